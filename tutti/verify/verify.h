#pragma once
// Whether many ranks do what one process would, and if not, why not.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tutti/gradient/data_parallel.h"
#include "tutti/verify/report.h"
#include "tutti/verify/trainee.h"

namespace tutti {

struct VerifyOptions {
  int steps = 3;
  /// Of the mesh, the axes that gradients are averaged over, where it has them.
  std::vector<std::string> axes = {"dp", "cp"};
  /// How many rows each of the ranks along these axes gets, in their order; none: as evenly as can be.
  std::vector<std::int64_t> rows = {};
  /// That each rank's rows are divided into, in order, by what is verified; known, a lost one can be named.
  int microbatches = 1;
  /// Unit roundoff of what gradients are sent as, when that is less than what they are: 0x1p-8 for bfloat16.
  double precision = 0;
  /// That models, and floats among the rows, are converted to: kFloat64 tells errors from rounding best. With a
  /// factory, it converts the models itself.
  std::optional<at::ScalarType> dtype = std::nullopt;
  /// Whether ranks' buffers have to be equal, too.
  bool buffers = true;
  double learning_rate = 0.01;  ///< where trainees have no step of their own
  /// How DataParallel is made, where `verify` makes it.
  DataParallelOptions data_parallel = {};
};

/// Trains a few steps on a batch, whose rows are divided over the ranks, and compares every step with one process that
/// has all rows and the same weights: the loss, every element of every gradient, ranks' parameters and buffers with
/// each other, and the weights after the last step. A gradient may differ from the sum of what one process computes for
/// each rank's rows by what rounding explains, and not more. Stops after the first step in which something is wrong.
///
/// All ranks of the mesh call it, with the same batch; all get the same report. Each rank computes the whole batch, and
/// for each parameter holds what all ranks have of it. Throws where models of ranks differ, and what trainees throw.
VerifyReport verify(const TraineeFactory& factory, const Rows& batch, const Mesh& mesh,
                    const VerifyOptions& options = {});

namespace verifying {

/// What `verify` makes of a module: a DataParallel, and backward passes as its options say.
Trainee data_parallel_trainee(std::shared_ptr<torch::nn::Module> module, std::function<at::Tensor(const Rows&)> loss,
                              const Mesh& mesh, const VerifyOptions& options);

}  // namespace verifying

/// The same for a model in a DataParallel: `make` makes it (a module holder or a shared pointer), the same on every
/// rank; `loss` gives the mean loss of some rows.
///
///   auto report = tutti::verify([] { return Net(); },
///                               [](Net& net, const tutti::Rows& rows) { return mse_loss(net(rows[0]), rows[1]); },
///                               {x, y}, world.mesh("dp=*"), {.dtype = torch::kFloat64});
template <class Make, class Loss>
VerifyReport verify(Make make, Loss loss, const Rows& batch, const Mesh& mesh, const VerifyOptions& options = {}) {
  const auto factory = [&](const Mesh& where, Role role) {
    auto model = make();
    const std::shared_ptr<torch::nn::Module> module = [&] {
      if constexpr (requires { model.ptr(); }) {
        return model.ptr();
      } else {
        return model;
      }
    }();
    if (options.dtype) {
      module->to(*options.dtype);
    }
    const auto of_rows = [model, loss](const Rows& rows) mutable { return loss(model, rows); };
    return role == Role::alone ? Trainee{.module = module, .loss = of_rows}
                               : verifying::data_parallel_trainee(module, of_rows, where, options);
  };
  return verify(TraineeFactory(factory), batch, mesh, options);
}

}  // namespace tutti
