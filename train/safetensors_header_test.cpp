#include "train/safetensors_header.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::train {
namespace {

using testing::HasSubstr;

std::string why(const std::string& text, std::size_t data_bytes) {
  const auto header = parse_header(text, data_bytes);
  return header ? "no error" : header.error().message;
}

std::string block(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& place) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{}]}})", name, dtype, shape, place);
}

std::string braced(const std::string& inside) { return fmt::format("{{{}}}", inside); }

TEST(SafetensorsHeader, IsReadAsItIsWritten) {
  const Header header{.blocks = {{"b", Dtype::i64, {1}, 0, 8}, {"a", Dtype::u8, {2, 2}, 8, 4}},
                      .metadata = {{"format", "pt"}}};
  const auto text = header_text(header);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text.value().size() % 8, 0U);
  const auto again = parse_header(text.value(), 12);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again.value().metadata, header.metadata);
  ASSERT_EQ(again.value().blocks.size(), 2U);
  EXPECT_EQ(again.value().blocks[0].name, "b");
  EXPECT_EQ(again.value().blocks[1].shape, (std::vector<std::int64_t>{2, 2}));
}

TEST(SafetensorsHeader, EveryTypeHasItsName) {
  for (int i = 0; i <= static_cast<int>(Dtype::f64); ++i) {
    EXPECT_EQ(find_dtype(to_string(static_cast<Dtype>(i))), static_cast<Dtype>(i));
  }
  EXPECT_EQ(to_string(Dtype::bf16), "BF16");
  EXPECT_EQ(bytes_of(Dtype::bf16), 2U);
  EXPECT_EQ(to_string(Dtype::f64), "F64");
  EXPECT_EQ(find_dtype("f32"), std::nullopt);
}

TEST(SafetensorsHeader, GapsAndOverlapsAreErrors) {
  const auto a = block("a", "U8", "4", "0,4");
  EXPECT_EQ(why(braced(a), 4), "no error");
  EXPECT_THAT(why(braced(a + "," + block("b", "U8", "2", "5,7")), 7), HasSubstr("\"b\" begins at byte 5"));
  EXPECT_THAT(why(braced(a + "," + block("b", "U8", "2", "3,5")), 5), HasSubstr("another block before it ends at 4"));
  EXPECT_THAT(why(braced(a + "," + block("b", "U8", "4", "0,4")), 4), HasSubstr("another block before it ends at 4"));
  EXPECT_THAT(why(braced(block("a", "U8", "4", "1,5")), 5), HasSubstr("begins at byte 1"));
  EXPECT_THAT(why(braced(a), 3), HasSubstr("ends at byte 4 of the data, of which there are 3"));
  EXPECT_THAT(why(braced(a), 5), HasSubstr("5 bytes of data follow the header, and its blocks take 4"));
  EXPECT_THAT(why("{}", 1), HasSubstr("1 bytes of data"));
}

TEST(SafetensorsHeader, EmptyBlocksMayLieAnywhereBetweenOthers) {
  EXPECT_EQ(why(fmt::format("{{{},{},{}}}", block("z", "U8", "4", "0,4"), block("e", "F32", "0", "0,0"),
                            block("f", "F32", "3,0", "4,4")),
                4),
            "no error");
}

TEST(SafetensorsHeader, ShapesMustFitTheirBytes) {
  EXPECT_THAT(why(braced(block("a", "F32", "1,3", "0,4")), 4),
              HasSubstr("a shape of [1, 3] in F32 does not take the 4 bytes"));
  EXPECT_THAT(why(braced(block("a", "F32", "4611686018427387904,4", "0,0")), 0), HasSubstr("does not take"))
      << "2^62 * 4 * 4 is 0 modulo 2^64";
  EXPECT_THAT(why(braced(block("a", "U8", "-1", "0,4")), 4), HasSubstr("whole numbers"));
  EXPECT_THAT(why(braced(block("a", "U8", "18446744073709551615", "0,4")), 4), HasSubstr("whole numbers"));
  EXPECT_THAT(why(braced(block("a", "U8", "4.0", "0,4")), 4), HasSubstr("whole numbers"));
  EXPECT_THAT(why(braced(block("a", "U8", "4", "4,0")), 4), HasSubstr("an end is not before its beginning"));
  EXPECT_THAT(why(braced(block("a", "U8", "4", "0,4,4")), 4), HasSubstr("whole numbers"));
  EXPECT_THAT(why(braced(block("a", "F31", "1", "0,4")), 4), HasSubstr("dtype is \"F31\", which is none"));
}

TEST(SafetensorsHeader, WhatIsNoHeaderIsAnError) {
  EXPECT_THAT(why("", 0), HasSubstr("does not begin with {"));
  EXPECT_THAT(why(" {}", 0), HasSubstr("does not begin with {"));
  EXPECT_THAT(why("{", 0), HasSubstr("no JSON"));
  EXPECT_EQ(why("{}   ", 0), "no error");
  EXPECT_THAT(why(R"({"a":1})", 0), HasSubstr("expected dtype, shape and data_offsets"));
  EXPECT_THAT(why(R"({"a":{"dtype":"U8","shape":[],"more":0}})", 0), HasSubstr("whole numbers"));
  EXPECT_THAT(why(braced(block("a", "U8", "0", "0,0") + "," + block("a", "U8", "0", "0,0")), 0),
              HasSubstr("\"a\" stands twice"));
  EXPECT_THAT(why(R"({"__metadata__":{"a":1}})", 0), HasSubstr("not names and texts"));
  EXPECT_THAT(why(R"({"__metadata__":[]})", 0), HasSubstr("not names and texts"));
}

}  // namespace
}  // namespace tutti::train
