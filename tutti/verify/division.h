#pragma once
// Who has which rows of a batch.

#include <string>
#include <vector>

#include "tutti/comm/mesh.h"
#include "tutti/verify/verify.h"

namespace tutti::verifying {

/// The rows of a part, of as many parts as there are numbers.
Rows part_of(const Rows& rows, const std::vector<std::int64_t>& sizes, std::size_t part);

/// So many rows, in parts that are as even as can be; longer ones first.
std::vector<std::int64_t> divide_evenly(std::int64_t rows, std::int64_t parts);

/// Of the mesh, the axes that gradients are averaged over. Throws where there is none.
std::vector<std::string> averaged_axes(const Mesh& mesh, const VerifyOptions& options);

struct Division {
  /// Throws where the batch cannot be divided as the options say.
  Division(const Rows& batch, const Mesh& mesh, const VerifyOptions& options);

  MeshLayout layout;
  std::vector<std::string> axes;          ///< of it, that are averaged over
  std::vector<std::vector<Rank>> slices;  ///< ranks that belong together, in the order of their rows
  std::size_t place = 0;                  ///< this rank's in its slice
  std::vector<std::int64_t> rows;         ///< by place in a slice
  std::vector<double> shares;             ///< of the batch, by rank of the mesh
};

}  // namespace tutti::verifying
