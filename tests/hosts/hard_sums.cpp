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

/// All of them on this rank alone.
at::Tensor alone(const std::vector<at::Tensor>& addends) {
  ReproducibleSum sum(addends[0]);
  for (const auto& addend : addends) {
    sum.add(addend);
  }
  return sum.rounded();
}

/// Some ranks may have nothing to add.
at::Tensor divided(const Group& group, const std::vector<at::Tensor>& addends, std::mt19937& random) {
  ReproducibleSum sum(addends[0]);
  for (const auto& addend : addends) {
    if (Rank{static_cast<int>(random() % static_cast<unsigned>(group.size()))} == group.rank()) {
      sum.add(addend);
    }
  }
  sum.all_reduce(group).wait();
  return sum.rounded();
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
    // One of each rank: what is left belongs to nobody.
    const auto some = alone({addends.begin(), addends.begin() + group.size()});
    for (const char* way : {"own", "at_once", "in_slices", "in_slices.ring@1/64Ki", "hybrid@2/4", "ring/2",
                            "double_tree", "halving_doubling"}) {
      const auto where = std::string(way) + ", " + std::string(kernels::to_string(dtype));
      group.choose("all_reduce", way);
      if (!same_bits(divided(group, addends, random), expected)) {
        return "another sum of eight by " + where;
      }
      auto mine = addends[to_index(group.rank())].clone();
      group.all_reduce(mine, ReduceOp::reproducible_sum).wait();
      if (!same_bits(mine, some)) {
        return "another sum of one each by " + where;
      }
      // So long that it does not go along with the greeting.
      auto many = addends[to_index(group.rank())].repeat({kRepeats});
      group.all_reduce(many, ReduceOp::reproducible_sum).wait();
      if (!same_bits(many, some.repeat({kRepeats}))) {
        return "another long sum of one each by " + where;
      }
    }
  }
  return {};
}

}  // namespace tutti::tests
