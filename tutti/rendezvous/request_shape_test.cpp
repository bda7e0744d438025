#include "tutti/rendezvous/request_shape.h"

#include <gtest/gtest.h>

#include "tutti/rendezvous/key_value.h"

namespace tutti::rendezvous {
namespace {

TEST(RequestShape, every_operation_has_one) {
  const Request good[] = {
      {Op::set, {"a", "b"}, {"1", "2"}, 0},
      {Op::get, {"a", "b", "c"}, {}, 0},
      {Op::wait, {}, {}, 0},
      {Op::add, {"a"}, {}, 3},
      {Op::compare_set, {"a"}, {"", "1"}, 0},
      {Op::erase, {"a"}, {}, 0},
      {Op::check, {"a"}, {}, 0},
      {Op::count, {}, {}, 0},
      {Op::list, {}, {}, 0},
      {Op::append, {"a"}, {"1"}, 0},
      {Op::push, {"a"}, {"1"}, 0},
      {Op::pop, {"a"}, {}, 1},
      {Op::queue_length, {"a"}, {}, 0},
      {Op::barrier, {"a"}, {}, 3},
  };
  int next = 1;
  for (const auto& request : good) {
    EXPECT_EQ(static_cast<int>(request.op), next++);  // none is left out
    EXPECT_TRUE(check_shape(request).ok()) << static_cast<int>(request.op);
    auto more = request;
    more.values.emplace_back("one too many");
    EXPECT_FALSE(check_shape(more).ok()) << static_cast<int>(request.op);
  }
}

TEST(RequestShape, sizes_are_limited) {
  EXPECT_TRUE(check_shape({Op::wait, {std::string(kMaxKeyBytes, 'k')}, {}, 0}).ok());
  EXPECT_FALSE(check_shape({Op::wait, {"a", std::string(kMaxKeyBytes + 1, 'k')}, {}, 0}).ok());
  EXPECT_FALSE(check_shape({Op::set, {"a"}, {std::string(kMaxValueBytes + 1, 'v')}, 0}).ok());
}

TEST(RequestShape, keys_are_shown_short_and_harmless) {
  EXPECT_EQ(shown("rank 3/addr"), "'rank 3/addr'");
  EXPECT_EQ(shown(std::string_view("a\0\n\x1b\xff", 5)), std::string("'a") + std::string(4, '?') + "'");
  EXPECT_EQ(shown(std::string(101, 'x')), "'" + std::string(100, 'x') + "...'");
}

}  // namespace
}  // namespace tutti::rendezvous
