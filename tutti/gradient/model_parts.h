#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "tutti/comm/group.h"

namespace tutti {

/// A parameter or a buffer, and what errors call it.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Those of a module and of all inside it, in the order in which the module registered them; each tensor once, under
/// its first name.
std::vector<NamedTensor> parameters_of(const torch::nn::Module& module);
std::vector<NamedTensor> buffers_of(const torch::nn::Module& module);
/// Parameters without names get numbers.
std::vector<NamedTensor> numbered(const std::vector<at::Tensor>& tensors);

/// "float32 [3, 4]"
std::string describe(const at::Tensor& tensor);

/// What every rank has to say, by rank. All ranks call it.
std::vector<std::string> told_by_all(const std::string& text, const Group& group);

/// Throws on every rank, naming the first tensor and two ranks, where ranks have different ones: in number, name, type,
/// shape, or whether they are trained. `what` is what they are: "parameter". All ranks call it.
void check_same(const std::vector<NamedTensor>& tensors, std::string_view what, const Group& group);

/// Gives every rank what that rank has. All ranks call it.
void broadcast(const std::vector<NamedTensor>& tensors, const Group& group, Rank from = Rank{0});

}  // namespace tutti
