#pragma once

#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "tutti/comm/group.h"
#include "tutti/comm/mesh.h"
#include "tutti/gradient/sharded_over.h"

namespace tutti {

struct AverageOptions {
  std::size_t bucket_bytes = std::size_t{25} << 20;
  /// Of a mesh, the axes that gradients are averaged over, where it has them. Along others, as tp, ranks have other
  /// parts of a model.
  std::vector<std::string> axes = {"dp", "cp"};
  /// Those are not averaged over the axes that they are divided over: with data parallelism that divides parameters,
  /// {"*", {"dp"}} leaves cp alone.
  std::vector<ShardedOver> sharded = {};
};

/// Averages gradients over the ranks of a group, in place, in few messages. All ranks call it, with the same
/// parameters. One that got a gradient on some ranks counts as zeros on the others, and has the average on all of them;
/// one that got none anywhere stays without. Ranks whose parameters or gradients differ in number, shape or type all
/// get an error that names the first and two ranks, and no gradient changes.
void average_gradients(const torch::nn::Module& module, const Group& group, const AverageOptions& options = {});
void average_gradients(const std::vector<at::Tensor>& parameters, const Group& group,
                       const AverageOptions& options = {});

/// Over the axes of a mesh that the options name.
void average_gradients(const torch::nn::Module& module, const Mesh& mesh, const AverageOptions& options = {});
void average_gradients(const std::vector<at::Tensor>& parameters, const Mesh& mesh, const AverageOptions& options = {});

/// The same, under way when it returns. Gradients are not to be touched before the Work was waited for, and have not
/// changed before.
[[nodiscard]] Work start_averaging_gradients(const torch::nn::Module& module, const Group& group,
                                             const AverageOptions& options = {});
[[nodiscard]] Work start_averaging_gradients(const torch::nn::Module& module, const Mesh& mesh,
                                             const AverageOptions& options = {});

}  // namespace tutti
