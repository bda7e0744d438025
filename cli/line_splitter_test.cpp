#include "cli/line_splitter.h"

#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace tutti::cli {
namespace {

using ::testing::ElementsAre;

/// Pieces as text: '<' in front of one that continues an earlier piece, '>' behind one that goes on.
std::vector<std::string> split(const std::vector<std::string>& parts, std::size_t longest) {
  LineSplitter splitter(longest);
  std::vector<std::string> lines;
  const auto sink = [&](const Line& line) {
    lines.push_back(fmt::format("{}{}{}", line.continued ? "<" : "", line.text, line.continues ? ">" : ""));
  };
  for (const std::string& part : parts) {
    splitter.feed(part, sink);
  }
  splitter.finish(sink);
  return lines;
}

TEST(LineSplitter, GivesWholeLines) {
  EXPECT_THAT(split({"one\ntwo\n"}, 100), ElementsAre("one", "two"));
  EXPECT_THAT(split({"on", "e\nt", "", "wo", "\n"}, 100), ElementsAre("one", "two"));
  EXPECT_THAT(split({"\n\nx\n"}, 100), ElementsAre("", "", "x"));
}

TEST(LineSplitter, LastLineNeedsNoNewline) {
  EXPECT_THAT(split({"one\ntw", "o"}, 100), ElementsAre("one", "two"));
  EXPECT_THAT(split({}, 100), ElementsAre());
  EXPECT_THAT(split({"one\n"}, 100), ElementsAre("one"));
}

TEST(LineSplitter, LongLinesComeInPieces) {
  EXPECT_THAT(split({"abcdefgh\nx\n"}, 3), ElementsAre("abc>", "<def>", "<gh", "x"));
  EXPECT_THAT(split({"abc\n"}, 3), ElementsAre("abc"));
  EXPECT_THAT(split({"abcdef\n"}, 3), ElementsAre("abc>", "<def"));
  EXPECT_THAT(split({"abcd"}, 3), ElementsAre("abc>", "<d"));
}

TEST(LineSplitter, HowBytesArriveMakesNoDifference) {
  const std::string text = "a\nbcdefghijk\n\nlm\nnopqrstu\nv";
  for (const std::size_t longest : {1, 2, 3, 7, 100}) {
    const auto whole = split({text}, longest);
    for (std::size_t step = 1; step < text.size(); ++step) {
      std::vector<std::string> parts;
      for (std::size_t at = 0; at < text.size(); at += step) {
        parts.push_back(text.substr(at, step));
      }
      EXPECT_EQ(split(parts, longest), whole) << longest << " " << step;
    }
  }
}

}  // namespace
}  // namespace tutti::cli
