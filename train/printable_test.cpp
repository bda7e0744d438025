#include "train/printable.h"

#include <gtest/gtest.h>

namespace tutti::train {
namespace {

constexpr const char* kLetters = "a\u00e4\u20ac\U0001f600";  // of 1, 2, 3 and 4 bytes

TEST(Printable, KeepsLettersAndReplacesTheRest) {
  EXPECT_EQ(printable(kLetters), kLetters);
  EXPECT_EQ(printable("a\x1b[31m\xff"), "a\uFFFD[31m\uFFFD");
  EXPECT_EQ(printable(std::string_view("end\0begin", 9)), "end\n\nbegin");
}

TEST(Printable, ALetterIsUnfinishedUntilItsLastByte) {
  const std::string_view text = kLetters;
  const std::size_t unfinished[] = {0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 0};  // by how much of it is there
  for (std::size_t size = 0; size <= text.size(); ++size) {
    EXPECT_EQ(unfinished_bytes(text.substr(0, size)), unfinished[size]) << size;
  }
}

TEST(Printable, WhatBeginsNoLetterIsNotWaitedFor) {
  for (const char* text : {"\x80", "a\xbf\xbf", "\xff", "\xc0", "\xbf\xbf\xbf\xbf\xbf"}) {
    EXPECT_EQ(unfinished_bytes(text), 0U);
  }
}

/// However it is cut, what comes piece by piece is what would have come at once.
TEST(Printable, PiecesAreTheWhole) {
  std::string noise;
  for (unsigned i = 0; i < 3000; ++i) {
    noise += static_cast<char>(i * i * 7919U >> 5U);
  }
  std::string waiting;
  std::string shown;
  for (const char byte : noise) {
    waiting += byte;
    const auto ready = waiting.size() - unfinished_bytes(waiting);
    shown += printable(std::string_view(waiting).substr(0, ready));
    waiting.erase(0, ready);
  }
  EXPECT_EQ(shown + printable(waiting), printable(noise));
}

}  // namespace
}  // namespace tutti::train
