#include "tutti/base/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Bytes, AreReadWithAndWithoutAUnit) {
  EXPECT_EQ(parse_bytes("1003").value(), 1003U);
  EXPECT_EQ(parse_bytes("64Ki").value(), 65536U);
  EXPECT_EQ(parse_bytes("64KiB").value(), 65536U);
  EXPECT_EQ(parse_bytes("7B").value(), 7U);
  EXPECT_EQ(parse_bytes("1.5Gi").value(), std::size_t{3} << 29);
}

TEST(Bytes, WhatIsNoSizeIsRefused) {
  for (const auto* bad : {"", "Ki", "0", "-1", "0.5", "64K", "64kib", "nan", "inf", "1e99", "1 Ki"}) {
    EXPECT_THAT(parse_bytes(bad).error().message, testing::HasSubstr("is no size")) << bad;
  }
}

TEST(Bytes, AreWrittenAsShortAsIsExact) {
  for (const auto* text : {"0", "7", "1003", "1Ki", "1025", "1536", "25Mi", "3Gi"}) {
    EXPECT_EQ(spell_bytes(std::string_view(text) == "0" ? 0 : parse_bytes(text).value()), text);
  }
}

}  // namespace
}  // namespace tutti
