#pragma once

#include <cstdint>
#include <vector>

#include "tutti/gradient/model_parts.h"

namespace tutti::verifying {

/// A number that two tensors share if and, but for one chance in 10^19, only if they have the same bits.
std::uint64_t hash_of(const at::Tensor& tensor);
std::vector<std::uint64_t> hashes_of(const std::vector<NamedTensor>& tensors);
/// One for all of them.
std::uint64_t hash_of(const std::vector<std::uint64_t>& hashes);

/// Those that are not as most are; of two that are as many, what the lowest rank has is right.
std::vector<Rank> odd_ones(const std::vector<std::uint64_t>& by_rank);

}  // namespace tutti::verifying
