#include "tutti/plan/switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::plan {
namespace {

using testing::HasSubstr;

TEST(Switches, AreReadFromLines) {
  const auto switches = Switches::parse("# the hall\nleft: ada bob  # old\n\n right:\tcyd\r\n").value();
  EXPECT_EQ(switches.of("ada"), 0U);
  EXPECT_EQ(switches.of("bob"), 0U);
  EXPECT_EQ(switches.of("cyd"), 1U);
  EXPECT_EQ(switches.of("dan"), 2U);
  EXPECT_EQ(switches.of(""), 2U);
  EXPECT_TRUE(Switches::parse("\n# nothing").value().empty());
}

TEST(Switches, WhatMakesNoSenseIsNamedByItsLine) {
  EXPECT_THAT(Switches::parse("left: ada\nbob").error().message, HasSubstr("line 2: a line is"));
  EXPECT_THAT(Switches::parse("left:").error().message, HasSubstr("line 1: a switch without hosts"));
  EXPECT_THAT(Switches::parse("left: ada\nright: ada").error().message, HasSubstr("line 2: host ada is at two"));
}

}  // namespace
}  // namespace tutti::plan
