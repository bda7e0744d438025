#include "tutti/verify/hash.h"

#include <xxhash.h>

#include <algorithm>

namespace tutti::verifying {

std::uint64_t hash_of(const at::Tensor& tensor) {
  const auto flat = tensor.detach().cpu().contiguous();
  return XXH3_64bits(flat.data_ptr(), flat.nbytes());
}

std::vector<std::uint64_t> hashes_of(const std::vector<NamedTensor>& tensors) {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(tensors.size());
  for (const auto& one : tensors) {
    hashes.push_back(hash_of(one.tensor));
  }
  return hashes;
}

std::uint64_t hash_of(const std::vector<std::uint64_t>& hashes) {
  return XXH3_64bits(hashes.data(), hashes.size() * sizeof(hashes[0]));
}

std::vector<Rank> odd_ones(const std::vector<std::uint64_t>& by_rank) {
  const auto votes = [&](std::uint64_t value) { return std::count(by_rank.begin(), by_rank.end(), value); };
  const auto right = *std::max_element(by_rank.begin(), by_rank.end(),
                                       [&](std::uint64_t a, std::uint64_t b) { return votes(a) < votes(b); });
  std::vector<Rank> odd;
  for (std::size_t i = 0; i < by_rank.size(); ++i) {
    if (by_rank[i] != right) {
      odd.push_back(to_rank(i));
    }
  }
  return odd;
}

}  // namespace tutti::verifying
