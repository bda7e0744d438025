#include "tutti/verify/exchange.h"

#include <algorithm>

#include <ATen/ops/empty.h>

namespace tutti::verifying {
namespace {

template <class T>
std::vector<std::vector<T>> gather(const std::vector<T>& own, at::ScalarType type, const Group& group) {
  std::vector<std::vector<T>> all(static_cast<std::size_t>(group.size()), std::vector<T>(own.size()));
  if (own.empty()) {
    return all;
  }
  const auto count = static_cast<std::int64_t>(own.size());
  const auto input = at::empty({count}, type);
  const auto output = at::empty({group.size() * count}, type);
  std::copy(own.begin(), own.end(), static_cast<T*>(input.data_ptr()));
  group.blocking().all_gather(output, input).wait();
  const auto* next = static_cast<const T*>(output.data_ptr());
  for (auto& one : all) {
    std::copy(next, next + count, one.begin());
    next += count;
  }
  return all;
}

}  // namespace

std::vector<std::vector<double>> numbers_of_all(const std::vector<double>& numbers, const Group& group) {
  return gather(numbers, at::kDouble, group);
}

std::vector<std::vector<std::uint64_t>> hashes_of_all(const std::vector<std::uint64_t>& hashes, const Group& group) {
  return gather(hashes, at::kLong, group);
}

std::vector<at::Tensor> tensors_of_all(const at::Tensor& own, const std::vector<std::int64_t>& elements,
                                       const Group& group) {
  std::vector<at::Tensor> all;
  for (const auto count : elements) {
    all.push_back(at::empty({own.size(0), count}, at::kDouble));
  }
  group.all_gather(all, own.contiguous()).wait();
  return all;
}

}  // namespace tutti::verifying
