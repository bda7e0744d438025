#pragma once
// What ranks tell each other to compare what they have.

#include <cstdint>
#include <vector>

#include "tutti/comm/group.h"

namespace tutti::verifying {

/// As many numbers on every rank, by rank. All ranks call each of these.
std::vector<std::vector<double>> numbers_of_all(const std::vector<double>& numbers, const Group& group);
std::vector<std::vector<std::uint64_t>> hashes_of_all(const std::vector<std::uint64_t>& hashes, const Group& group);

/// A tensor of doubles of every rank, by rank: [rows, elements of that rank].
std::vector<at::Tensor> tensors_of_all(const at::Tensor& own, const std::vector<std::int64_t>& elements,
                                       const Group& group);

}  // namespace tutti::verifying
