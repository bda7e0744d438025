#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tutti/comm/mesh.h"
#include "tutti/gradient/model_parts.h"

namespace tutti::verifying {

/// The parameters, or buffers, of all ranks of a mesh: every name once.
struct Roster {
  struct Entry {
    std::string name;
    at::ScalarType type = at::kFloat;
    std::vector<std::int64_t> elements = {};  ///< by rank, as real numbers; -1 where there is none
    std::optional<std::size_t> place = {};    ///< among this rank's tensors

    bool held_by(Rank rank) const { return elements[to_index(rank)] >= 0; }
  };
  std::vector<Entry> entries;

  /// All ranks call it. Throws on all, naming the first and two ranks, where ranks that belong together differ in
  /// names, shapes or types.
  Roster(const std::vector<NamedTensor>& tensors, const Group& group, const std::vector<std::vector<Rank>>& slices);
};

/// A tensor's elements as doubles, in a row; complex ones as two.
at::Tensor flat_doubles(const at::Tensor& tensor);

/// Half the distance from one to the next number of that type.
double roundoff_of(at::ScalarType type);
/// Below this, the type has fewer digits.
double smallest_normal(at::ScalarType type);

}  // namespace tutti::verifying
