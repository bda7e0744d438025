#pragma once
// Bugs that people write, one for each kind that the verifier should name.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tutti/verify/test_kits.h"
#include "tutti/verify/verify.h"

namespace tutti {

/// Where a bug is planted.
struct Plot {
  const Mesh& mesh;
  Group group;  ///< that gradients should be averaged over
  Rank victim;  ///< of the mesh
  bool is_victim;
  Kit kit;
  Rows batch;
  const VerifyOptions& options;
  int seed = 0;
};

struct Bug {
  std::string name;
  /// Changes a trainee that averages by hand, and rightly.
  std::function<void(Trainee&, const Plot&)> plant;
  std::vector<Cause> causes;     ///< any of them is right
  bool names_parameter = false;  ///< the one that the seed says is the first finding, and the only one
  bool names_victim = false;     ///< the victim is blamed
  std::vector<std::string> meshes = {"dp=2", "dp=3", "dp=4"};
  std::vector<std::string> models = {"mlp", "cnn", "gpt"};
  VerifyOptions options = {};
  /// What the factor should be, from the number of ranks.
  std::function<double(int)> factor = nullptr;
  std::string detail = {};
  std::vector<std::int64_t> rows_each = {3, 3, 3, 3};
};

const std::vector<Bug>& all_bugs();

}  // namespace tutti
