#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "bench/collective.h"
#include "bench/measure.h"
#include "bench/options.h"

namespace bench {
namespace {

TEST(Options, SizesMayHaveUnits) {
  EXPECT_EQ(parse_sizes("8,4Ki,25Mi,1Gi"), (std::vector<std::size_t>{8, 4096, 26214400, 1073741824}));
}

TEST(Options, NonsenseEndsTheProgramWithASentence) {
  EXPECT_EXIT(parse_size("4Kb"), testing::ExitedWithCode(2), "wants a number, not '4Kb'");
  EXPECT_EXIT(parse_op("reduce_all"), testing::ExitedWithCode(2), "no operation 'reduce_all'");
}

Options parse_words(std::vector<const char*> words) {
  words.insert(words.begin(), "bench");
  return parse_options(static_cast<int>(words.size()), const_cast<char**>(words.data()));
}

TEST(Options, NumbersThatMakeNoSenseAreRefused) {
  EXPECT_EQ(parse_words({"--seconds-per-size", "0.0001"}).seconds_per_size, 0.0001);
  for (const auto* seconds : {"nan", "inf", "-1", "0", "1e300", "-nan", "1e400"}) {
    EXPECT_EXIT(parse_words({"--seconds-per-size", seconds}), testing::ExitedWithCode(2),
                "bench: --seconds-per-size wants [^\n]*'\n$")
        << seconds;
  }
  for (const auto& [option, value] : {std::pair("--sizes", "8,0"),
                                      {"--sizes", "99999999999Gi"},
                                      {"--sizes", "-8"},
                                      {"--min-iterations", "0"},
                                      {"--min-iterations", "20001"},
                                      {"-n", "0"}}) {
    EXPECT_EXIT(parse_words({option, value}), testing::ExitedWithCode(2), option) << value;
  }
}

TEST(Measure, PercentilesLieBetweenSamples) {
  const Summary summary = summarize({5, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(summary.median_us, 3);
  EXPECT_DOUBLE_EQ(summary.p10_us, 1.4);
  EXPECT_DOUBLE_EQ(summary.p90_us, 4.6);
  EXPECT_EQ(summary.samples, 5U);
}

TEST(Collective, SizesAreRoundedToWholeElementsOfEveryRank) {
  EXPECT_EQ(shape_of(Op::all_reduce, Dtype::float32, 3, 1003).bytes(), 1000U);
  EXPECT_EQ(shape_of(Op::all_gather, Dtype::float32, 3, 1003).bytes(), 996U);
  EXPECT_EQ(shape_of(Op::all_to_all, Dtype::float64, 3, 8).bytes(), 24U);  // one element for each, at least
  EXPECT_EQ(shape_of(Op::barrier, Dtype::float32, 3, 8).bytes(), 0U);
}

/// All ranks' results by the book, from all ranks' inputs.
double reference(const Shape& shape, std::size_t rank, std::size_t index) {
  std::vector<std::vector<double>> inputs(shape.ranks);
  for (std::size_t r = 0; r < shape.ranks; ++r) {
    for (std::size_t i = 0; i < shape.input(); ++i) {
      inputs[r].push_back(input_value(r, i));
    }
  }
  const auto sum = [&](std::size_t at) {
    double total = 0;
    for (const auto& input : inputs) {
      total += input[at];
    }
    return total;
  };
  switch (shape.op) {
    case Op::all_reduce: return sum(index);
    case Op::broadcast: return inputs[0][index];
    case Op::all_gather: return inputs[index / shape.part][index % shape.part];
    case Op::reduce_scatter: return sum(rank * shape.part + index);
    default: return inputs[index / shape.part][rank * shape.part + index % shape.part];
  }
}

TEST(Collective, ExpectsWhatTheOperationsMean) {
  for (const Op op : {Op::all_reduce, Op::broadcast, Op::all_gather, Op::reduce_scatter, Op::all_to_all}) {
    const Shape shape = shape_of(op, Dtype::float32, 3, 420);
    for (std::size_t rank = 0; rank < 3; ++rank) {
      for (std::size_t i = 0; i < shape.output(); ++i) {
        ASSERT_EQ(expected_value(shape, rank, i), reference(shape, rank, i));
      }
    }
  }
}

TEST(Collective, EveryTypeKeepsSmallNumbers) {
  for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::int32, Dtype::bfloat16}) {
    Buffer buffer(7 * element_bytes(dtype));
    store_value(dtype, buffer.data(), 5, 129);
    EXPECT_EQ(load_value(dtype, buffer.data(), 5), 129);
    EXPECT_EQ(load_value(dtype, buffer.data(), 6), 0);
  }
}

TEST(Collective, AWrongElementEndsTheProgram) {
  const Shape shape = shape_of(Op::all_reduce, Dtype::float32, 1, 40);
  Buffer buffer(shape.bytes());
  fill(shape, 0, buffer.data());
  check(shape, 0, buffer.data());
  store_value(shape.dtype, buffer.data(), 3, 77);
  EXPECT_EXIT(check(shape, 0, buffer.data()), testing::ExitedWithCode(2), "wrong result on rank 0: element 3 is 77");
}

}  // namespace
}  // namespace bench
