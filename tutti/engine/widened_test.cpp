#include "tutti/engine/widened.h"

#include <vector>

#include <gtest/gtest.h>

#include "tutti/kernels/small_float.h"

namespace tutti::engine {
namespace {

using kernels::DType;
using kernels::ReduceOp;

template <class T>
Block bytes_of(std::vector<T>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(T)};
}

TEST(Widened, OnlySumsThatAreRounded) {
  const auto type = [](ReduceOp op, DType dtype) {
    return Widened::type_for({.op = Op::all_reduce, .dtype = dtype, .reduce = op});
  };
  EXPECT_EQ(type(ReduceOp::sum, DType::bfloat16), DType::float32);
  EXPECT_EQ(type(ReduceOp::avg, DType::float8_e5m2), DType::float32);
  EXPECT_EQ(type(ReduceOp::max, DType::bfloat16), std::nullopt);
  EXPECT_EQ(type(ReduceOp::sum, DType::float32), std::nullopt);
  EXPECT_EQ(type(ReduceOp::reproducible_sum, DType::float32), DType::accumulator32);
  EXPECT_EQ(type(ReduceOp::reproducible_avg, DType::complex128), DType::accumulator64);
  EXPECT_EQ(Widened::type_for({.op = Op::broadcast, .dtype = DType::bfloat16}), std::nullopt);
}

TEST(Widened, ThereAndBack) {
  std::vector<kernels::BFloat16> values;
  for (int i = 0; i < 1003; ++i) {
    values.push_back(kernels::narrow<kernels::BFloat16>(0.1F * static_cast<float>(i)));
  }
  std::vector<kernels::BFloat16> out(values.size());
  for (const auto op : {ReduceOp::sum, ReduceOp::reproducible_sum}) {
    Call call{.op = Op::all_reduce, .dtype = DType::bfloat16, .reduce = op};
    call.in = {ConstBlock(bytes_of(values))};
    call.out = {bytes_of(out)};
    Widened widened;
    const auto& wide = widened.begin(call);
    EXPECT_EQ(wide.in[0].size(), Widened::bytes_for(make_card(call)));
    std::copy(wide.in[0].begin(), wide.in[0].end(), wide.out[0].begin());
    widened.finish(call, 3);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(out[i].bits, values[i].bits);
    }
  }
}

}  // namespace
}  // namespace tutti::engine
