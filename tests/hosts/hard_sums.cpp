#include "tests/hosts/hard_sums.h"

#include <random>

#include "tutti/kernels/test_hard_inputs.h"

namespace tutti::tests {
namespace {

using kernels::DType;

constexpr std::size_t kAddends = 8;
constexpr std::int64_t kCount = 10'007;
constexpr std::int64_t kRepeats = 11;

std::vector<at::Tensor> tensors_of(const kernels::hard::Inputs& inputs, c10::ScalarType type) {
  std::vector<at::Tensor> tensors;
  for (const auto* addend : inputs.pointers()) {
    tensors.push_back(torch::from_blob(const_cast<std::byte*>(addend), {kCount}, type));  // only read
  }
  return tensors;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

/// Their sum on this rank alone, by so much.
at::Tensor alone(const std::vector<at::Tensor>& addends, std::int64_t divisor = 1) {
  ReproducibleSum sum(addends[0]);
  for (const auto& addend : addends) {
    sum.add(addend);
  }
  return sum.rounded(divisor);
}

/// In one step, kept in shared memory or not, and in two. Some ranks may have nothing to add.
bool divided_is(const at::Tensor& expected, const Group& group, const std::vector<at::Tensor>& addends,
                std::mt19937& random) {
  ReproducibleSum sum(addends[0]);
  ReproducibleSum once(addends[0]);
  ReproducibleSum shared(addends[0], group);
  for (const auto& addend : addends) {
    if (Rank{static_cast<int>(random() % static_cast<unsigned>(group.size()))} == group.rank()) {
      sum.add(addend);
      once.add(addend);
      shared.add(addend);
    }
  }
  sum.all_reduce(group).wait();
  return same_bits(once.rounded_over(group), expected) && same_bits(shared.rounded_over(group), expected) &&
         same_bits(sum.rounded(), expected);
}

/// So long that it goes in several segments, from memory that is not shared.
bool ordinary_mean_is_right(const Group& group, const std::vector<at::Tensor>& addends, std::mt19937& random) {
  std::vector<at::Tensor> all;
  Summands mine;
  for (const auto& addend : addends) {
    all.push_back(addend.repeat({kRepeats}));
    if (Rank{static_cast<int>(random() % static_cast<unsigned>(group.size()))} == group.rank()) {
      mine.addends.push_back(all.back());
    }
  }
  auto result = at::empty_like(all[0]);
  group.round_sums(result, mine, 3).wait();
  return same_bits(result, alone(all, 3));
}

/// The same from memory that is, of each addend so many: of few, addends travel; of many, ranks keep accumulators.
bool shared_mean_is_right(const Group& group, const std::vector<at::Tensor>& addends, std::size_t times,
                          std::mt19937& random) {
  std::vector<at::Tensor> all;
  for (const auto& addend : addends) {
    all.insert(all.end(), times, addend.repeat({kRepeats}));
  }
  ReproducibleSum sum(all[0], group);
  for (const auto& addend : all) {
    if (Rank{static_cast<int>(random() % static_cast<unsigned>(group.size()))} == group.rank()) {
      sum.add(addend);
    }
  }
  return same_bits(sum.rounded_over(group, 3), alone(all, 3));
}

}  // namespace

std::string wrong_hard_sum(const World& world, unsigned seed) {
  const auto& group = world.group();
  std::mt19937 random(seed);  // the same on every rank
  for (const auto& [dtype, type] : {std::pair{DType::float32, torch::kFloat32},
                                    {DType::float64, torch::kFloat64},
                                    {DType::bfloat16, torch::kBFloat16},
                                    {DType::float16, torch::kHalf}}) {
    const kernels::hard::Inputs inputs(dtype, kAddends, kCount);
    const auto addends = tensors_of(inputs, type);
    const auto expected = alone(addends);
    const std::vector<at::Tensor> few(addends.begin(), addends.begin() + 4);
    if (!ordinary_mean_is_right(group, addends, random) || !shared_mean_is_right(group, few, 1, random) ||
        !shared_mean_is_right(group, addends, 5, random)) {
      return "another long mean of " + std::string(kernels::to_string(dtype));
    }
    // One of each rank: what is left belongs to nobody.
    const std::vector<at::Tensor> one_each(addends.begin(), addends.begin() + group.size());
    const auto sum = alone(one_each);
    const auto mean = alone(one_each, group.size());
    for (const char* way : {"own", "at_once", "in_slices", "in_slices.ring@1/64Ki", "hybrid@2/4", "ring/2",
                            "double_tree", "halving_doubling"}) {
      const auto where = std::string(way) + ", " + std::string(kernels::to_string(dtype));
      group.choose("all_reduce", way);
      if (!divided_is(expected, group, addends, random)) {
        return "another sum of eight by " + where;
      }
      for (const auto& [reduce, expected_of_one_each] :
           {std::pair{ReduceOp::reproducible_sum, sum}, {ReduceOp::reproducible_avg, mean}}) {
        // Also so long that it does not go along with the greeting.
        for (const std::int64_t repeats : {std::int64_t{1}, kRepeats}) {
          auto mine = addends[to_index(group.rank())].repeat({repeats});
          group.all_reduce(mine, reduce).wait();
          if (!same_bits(mine, expected_of_one_each.repeat({repeats}))) {
            return "another sum or mean of one each, " + std::to_string(repeats) + " times, by " + where;
          }
        }
      }
    }
  }
  return {};
}

}  // namespace tutti::tests
