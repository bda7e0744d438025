#include "tutti/gradient/average.h"

#include <algorithm>
#include <map>

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/gradient/bucket.h"
#include "tutti/gradient/hook.h"

namespace tutti {
namespace {

using gradient::Bucket;

/// What gradients look like when they travel: those that are not there, or sparse, as their parameters.
std::vector<NamedTensor> gradients_of(const std::vector<NamedTensor>& parameters) {
  std::vector<NamedTensor> gradients;
  for (const auto& [name, tensor] : parameters) {
    const bool as_it_is = tensor.grad().defined() && !tensor.grad().is_sparse();
    gradients.push_back({name, (as_it_is ? tensor.grad() : tensor).detach()});
  }
  return gradients;
}

/// By parameter whether any rank has a gradient.
std::vector<char> agree_on_use(const std::vector<NamedTensor>& parameters, const Group& group) {
  auto flags = at::empty({static_cast<std::int64_t>(parameters.size())}, at::kByte);
  auto* const values = flags.data_ptr<std::uint8_t>();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    values[i] = parameters[i].tensor.grad().defined() ? 1 : 0;
  }
  group.blocking().all_reduce(flags, ReduceOp::bor).wait();
  return {values, values + parameters.size()};
}

/// One reduction of some parameters' gradients, under way.
class Averaging {
 public:
  Averaging(const std::vector<NamedTensor>& parameters, const Group& group, std::size_t bucket_bytes) {
    const c10::NoGradGuard no_grad;
    const auto gradients = gradients_of(parameters);
    check_same(gradients, "gradient", group);
    const auto used = agree_on_use(parameters, group);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (used[i] != 0) {
        order.push_back(i);
      }
    }
    const gradient::BucketSizes limits{.first = bucket_bytes, .others = bucket_bytes};
    for (const auto& layout : lay_out(gradient::sizes_of(gradients), order, limits)) {
      auto& bucket = buckets_.emplace_back(layout, gradients, group);
      for (std::size_t i = 0; i < bucket.numbers.size(); ++i) {
        const auto& parameter = parameters[bucket.numbers[i]].tensor;
        owners_.push_back(parameter);
        if (parameter.grad().defined()) {
          gradient::put(bucket.views[i], parameter.grad());
        }
      }
      bucket.work = all_reduce(bucket.memory, ReduceOp::avg, group);
    }
  }

  void finish() {
    const c10::NoGradGuard no_grad;
    auto owner = owners_.begin();
    for (auto& bucket : buckets_) {
      bucket.work->wait();
    }
    for (auto& bucket : buckets_) {
      for (const auto& view : bucket.views) {
        auto& own = (owner++)->mutable_grad();
        if (!own.defined() || own.is_sparse()) {
          own = view.clone();
        } else {
          gradient::put(own, view);
        }
      }
    }
  }

 private:
  std::vector<Bucket> buckets_;
  std::vector<at::Tensor> owners_;  // of all buckets' slots
};

std::shared_ptr<Averaging> start(const std::vector<NamedTensor>& parameters, const Group& group,
                                 const AverageOptions& options) {
  return std::make_shared<Averaging>(parameters, group, options.bucket_bytes);
}

/// The axes that a parameter is averaged over, as the mesh names a slice: "dp,cp".
std::string axes_for(const std::string& name, const Mesh& mesh, const AverageOptions& options) {
  std::string text;
  for (const auto& axis : mesh.axes()) {
    const bool wanted = std::find(options.axes.begin(), options.axes.end(), axis.name) != options.axes.end() &&
                        !is_sharded(options.sharded, name, axis.name);
    text += wanted ? (text.empty() ? "" : ",") + axis.name : "";
  }
  return text;
}

std::vector<std::shared_ptr<Averaging>> start(const std::vector<NamedTensor>& parameters, const Mesh& mesh,
                                              const AverageOptions& options) {
  std::map<std::string, std::vector<NamedTensor>> by_axes;
  for (const auto& one : parameters) {
    by_axes[axes_for(one.name, mesh, options)].push_back(one);
  }
  if (by_axes.size() == 1 && by_axes.begin()->first.empty() && options.sharded.empty()) {
    throw Exception({Code::invalid_argument, fmt::format("average_gradients: mesh {} has none of the axes {}",
                                                         mesh.text(), fmt::join(options.axes, ", "))});
  }
  std::vector<std::shared_ptr<Averaging>> started;
  for (const auto& [axes, some] : by_axes) {
    if (!axes.empty()) {
      started.push_back(start(some, mesh[axes].group(), options));
    }
  }
  return started;
}

Work as_work(std::vector<std::shared_ptr<Averaging>> started) {
  return then(Work(nullptr), [started = std::move(started)] {
    for (const auto& one : started) {
      one->finish();
    }
  });
}

}  // namespace

void average_gradients(const torch::nn::Module& module, const Group& group, const AverageOptions& options) {
  start(parameters_of(module), group, options)->finish();
}

void average_gradients(const std::vector<at::Tensor>& parameters, const Group& group, const AverageOptions& options) {
  start(numbered(parameters), group, options)->finish();
}

void average_gradients(const torch::nn::Module& module, const Mesh& mesh, const AverageOptions& options) {
  start_averaging_gradients(module, mesh, options).wait();
}

void average_gradients(const std::vector<at::Tensor>& parameters, const Mesh& mesh, const AverageOptions& options) {
  as_work(start(numbered(parameters), mesh, options)).wait();
}

Work start_averaging_gradients(const torch::nn::Module& module, const Group& group, const AverageOptions& options) {
  return as_work({start(parameters_of(module), group, options)});
}

Work start_averaging_gradients(const torch::nn::Module& module, const Mesh& mesh, const AverageOptions& options) {
  return as_work(start(parameters_of(module), mesh, options));
}

}  // namespace tutti
