#include "tutti/gradient/clip.h"

#include <cmath>
#include <map>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "tutti/gradient/model_parts.h"

namespace tutti {
namespace {

/// What norms of parts are added up as: the norm's own power; of the largest magnitude, itself.
double power_of_norm(const at::Tensor& gradient, double norm) {
  const auto values = gradient.is_sparse() ? gradient.coalesce().values() : gradient;
  if (values.numel() == 0) {
    return 0;
  }
  // Squares of float32 would overflow where the norm does not.
  const auto wide = values.is_complex() ? values.abs().to(at::kDouble) : values.to(at::kDouble);
  const auto length = at::linalg_vector_norm(wide, norm).item<double>();
  return std::isinf(norm) ? length : std::pow(length, norm);
}

double joined(double a, double b, double norm) {
  // Not std::max, which loses a NaN.
  return !std::isinf(norm) ? a + b : (a > b || std::isnan(a)) ? a : b;
}

/// As the mesh names a slice: "tp,ep".
std::string axes_of(const std::string& parameter, const Mesh& mesh, const std::vector<ShardedOver>& sharded) {
  std::string text;
  for (const auto& axis : mesh.axes()) {
    text += is_sharded(sharded, parameter, axis.name) ? (text.empty() ? "" : ",") + axis.name : "";
  }
  return text;
}

double clip(const torch::nn::Module& module, const Mesh* mesh, double largest, const ClipOptions& options) {
  if (!(options.norm > 0) || !(largest >= 0)) {
    throw Exception({Code::invalid_argument,
                     fmt::format("clip_gradients: norm {} and largest value {}; the first has to be above zero, the "
                                 "second not below",
                                 options.norm, largest)});
  }
  const c10::NoGradGuard no_grad;
  const auto parameters = parameters_of(module);
  std::map<std::string, double> powers;  // by the axes that parameters are divided over
  for (const auto& [name, tensor] : parameters) {
    // Those without a gradient here may have one elsewhere: all ranks add up along the same axes.
    auto& power = powers[mesh != nullptr ? axes_of(name, *mesh, options.sharded) : std::string()];
    if (tensor.grad().defined()) {
      power = joined(power, power_of_norm(tensor.grad(), options.norm), options.norm);
    }
  }
  double total = 0;
  for (const auto& [axes, power] : powers) {
    auto sum = at::full({1}, power, at::kDouble);
    if (!axes.empty()) {
      (*mesh)[axes].group().blocking().all_reduce(sum, std::isinf(options.norm) ? ReduceOp::max : ReduceOp::sum).wait();
    }
    total = joined(total, sum.item<double>(), options.norm);
  }
  const auto length = std::isinf(options.norm) ? total : std::pow(total, 1 / options.norm);
  if (options.error_if_nonfinite && !std::isfinite(length)) {
    throw Exception({Code::invalid_argument,
                     fmt::format("clip_gradients: the gradients' norm is {}; they are left as they are", length)});
  }
  if (length > largest || std::isnan(length)) {
    for (const auto& one : parameters) {
      if (one.tensor.grad().defined()) {
        one.tensor.mutable_grad().mul_(largest / length);
      }
    }
  }
  return length;
}

}  // namespace

double clip_gradients(const torch::nn::Module& module, double largest, const ClipOptions& options) {
  if (!options.sharded.empty()) {
    throw Exception({Code::invalid_argument, "clip_gradients: parameters that are divided need a mesh"});
  }
  return clip(module, nullptr, largest, options);
}

double clip_gradients(const torch::nn::Module& module, const Mesh& mesh, double largest, const ClipOptions& options) {
  return clip(module, &mesh, largest, options);
}

}  // namespace tutti
