#include "tutti/base/error.h"

#include <cerrno>
#include <memory>

#include <gtest/gtest.h>

namespace tutti {
namespace {

Result<std::unique_ptr<int>> half(int number) {
  if (number % 2 != 0) {
    return Error{Code::invalid_argument, "7 is odd"};
  }
  return std::make_unique<int>(number / 2);
}

TEST(Result, HoldsAValueThatCanOnlyMove) {
  auto result = half(6);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*std::move(result).value(), 3);
}

TEST(Result, HoldsAnError) {
  const auto result = half(7);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::invalid_argument);
  EXPECT_EQ(result.error().message, "7 is odd");
}

TEST(Status, IsGoodByDefault) {
  EXPECT_TRUE(Status{}.ok());
  EXPECT_FALSE(Status(Error{.code = Code::timed_out, .message = "late"}).ok());
}

TEST(SystemError, SaysWhatAndWhy) {
  EXPECT_EQ(system_error("cannot map 4096 bytes", ENOMEM).message, "cannot map 4096 bytes: Cannot allocate memory");
}

TEST(Code, EachHasAWord) {
  for (int code = 0; code <= static_cast<int>(Code::protocol); ++code) {
    EXPECT_NE(to_string(static_cast<Code>(code)), "unknown");
  }
}

TEST(RequireDeathTest, NamesTheSentenceAndThePlace) {
  EXPECT_DEATH(require(1 + 1 == 3, "sums add up"), "broken invariant: sums add up .*error_test.cpp");
  EXPECT_DEATH((void)half(7).value(), "value\\(\\) of a failed result");
}

}  // namespace
}  // namespace tutti
