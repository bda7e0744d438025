#include "tutti/gradient/batch_norm.h"

#include <ATen/ATen.h>
#include <ATen/ops/batch_norm_native.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/library.h>

#include "tutti/gradient/model_parts.h"

namespace tutti {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using MaybeTensor = std::optional<at::Tensor>;

/// Hangs at a tensor of a batch norm that is synchronized, and says with whom. As a hook of autograd it stays there
/// whatever type or device the tensor is moved to.
struct SyncMark final : torch::autograd::FunctionPreHook {
  explicit SyncMark(Group with) : group(std::move(with)) {}
  variable_list operator()(const variable_list& gradients) override { return gradients; }
  const Group group;
};

const SyncMark* mark_of(const MaybeTensor& tensor) {
  if (!tensor || !tensor->defined() || torch::autograd::impl::get_autograd_meta(*tensor) == nullptr) {
    return nullptr;
  }
  const SyncMark* last = nullptr;
  for (const auto& hook : torch::autograd::impl::hooks(*tensor)) {
    const auto* const mark = dynamic_cast<const SyncMark*>(hook.get());
    last = mark != nullptr ? mark : last;
  }
  return last;
}

/// A group of its own: its operations come in between those of gradients, in whatever order.
Group own_group(const Group& group) {
  std::vector<Rank> all;
  for (int rank = 0; rank < group.size(); ++rank) {
    all.push_back(Rank{rank});
  }
  return group.subgroup(all)->blocking();
}

/// All dimensions but that of features.
std::vector<std::int64_t> others(const at::Tensor& x) {
  std::vector<std::int64_t> dimensions{0};
  for (std::int64_t i = 2; i < x.dim(); ++i) {
    dimensions.push_back(i);
  }
  return dimensions;
}

/// One value for each feature, in a shape that goes with x.
at::Tensor along(const at::Tensor& values, const at::Tensor& x) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[1] = -1;
  return values.to(x.scalar_type()).reshape(shape);
}

/// Of the batches of all ranks, by feature, in float64.
struct Moments {
  at::Tensor mean;
  at::Tensor variance;
  double count = 0;
};

/// Each rank has mean and squares around it; so nothing is lost where a mean is large and a variance small.
Moments moments_of(const at::Tensor& x, const Group& group) {
  const auto features = x.size(1);
  const double count = features > 0 ? static_cast<double>(x.numel() / features) : 0;
  auto own = at::zeros({2 * features + 1}, at::kDouble);
  own[2 * features].fill_(count);
  if (count > 0) {
    const auto [variance, mean] = at::var_mean(x, others(x), c10::make_optional<at::Scalar>(0), false);
    own.slice(0, 0, features).copy_(mean);
    own.slice(0, features, 2 * features).copy_(variance.to(at::kDouble) * count);
  }
  auto all = at::empty({group.size(), 2 * features + 1}, at::kDouble);
  group.all_gather(all, own).wait();
  const auto counts = all.slice(1, 2 * features);
  const auto means = all.slice(1, 0, features);
  Moments moments;
  moments.count = counts.sum().item<double>();
  if (moments.count < 2) {
    throw Exception({Code::invalid_argument,
                     "synchronized batch norm: a variance needs more than one value of each feature, and all ranks "
                     "together have no more than one; use larger batches, or eval()"});
  }
  moments.mean = (means * counts).sum(0) / moments.count;
  moments.variance =
      (all.slice(1, features, 2 * features) + counts * (means - moments.mean).square()).sum(0) / moments.count;
  return moments;
}

/// What backward has to know that is no tensor.
struct HeldGroup final : torch::CustomClassHolder {
  explicit HeldGroup(Group held) : group(std::move(held)) {}
  const Group group;
};

/// What autograd takes for no tensor at all.
MaybeTensor none_if_undefined(const MaybeTensor& tensor) { return tensor && tensor->defined() ? tensor : std::nullopt; }

/// The features' weights, for which ones stand where there are none.
at::Tensor weights_for(const at::Tensor& weight, const at::Tensor& x) {
  return weight.defined() ? weight.to(x.scalar_type()) : at::ones({x.size(1)}, x.options());
}

/// Small floats are computed in float32.
at::Tensor widened(const at::Tensor& x) { return x.to(at::promote_types(x.scalar_type(), at::kFloat)); }

struct Normalize : torch::autograd::Function<Normalize> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, const MaybeTensor& maybe_weight,
                            const MaybeTensor& maybe_bias, const Group& group, double eps, Moments* moments) {
    const auto weight = maybe_weight.value_or(at::Tensor());
    const auto bias = maybe_bias.value_or(at::Tensor());
    const auto x = widened(input);
    *moments = moments_of(x, group);
    const auto mean = moments->mean.to(x.options());
    const auto variance = moments->variance.to(x.options());
    context->save_for_backward({input, weight, mean, variance});
    context->saved_data["group"] = c10::IValue::make_capsule(c10::make_intrusive<HeldGroup>(group));
    context->saved_data["count"] = moments->count;
    context->saved_data["eps"] = eps;
    context->saved_data["bias"] = bias.defined();
    if (x.numel() == 0) {
      return at::empty_like(input);
    }
    const auto wide_bias = bias.defined() ? bias.to(x.scalar_type()) : at::Tensor();
    const auto y =
        std::get<0>(at::native_batch_norm(x, weights_for(weight, x), wide_bias, mean, variance, false, 0, eps));
    return y.to(input.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (at::GradMode::is_enabled()) {
      throw Exception({Code::unsupported,
                       "synchronized batch norm: its backward cannot be differentiated once more (create_graph)"});
    }
    const auto saved = context->get_saved_variables();
    const auto group = c10::static_intrusive_pointer_cast<HeldGroup>(context->saved_data["group"].toCapsule())->group;
    const auto count = context->saved_data["count"].toDouble();
    const auto eps = context->saved_data["eps"].toDouble();
    const auto x = widened(saved[0]);
    const auto& [mean, variance] = std::tie(saved[2], saved[3]);
    const auto weight = weights_for(saved[1], x);
    const auto features = x.size(1);

    // As if mean and variance were constants: then what is missing are two numbers for each feature, of all ranks.
    at::Tensor dx, dweight, dbias;
    auto sums = at::zeros({2, features}, x.options().dtype(at::kDouble));
    if (x.numel() > 0) {
      std::tie(dx, dweight, dbias) =
          at::native_batch_norm_backward(widened(gradients[0]).contiguous(x.suggest_memory_format()), x, weight, mean,
                                         variance, {}, {}, false, eps, {true, true, true});
      sums[0].copy_(dbias);
      sums[1].copy_(dweight);
    }
    group.all_reduce(sums).wait();
    if (x.numel() > 0) {
      sums /= count;
      const auto inverse = (variance.to(at::kDouble) + eps).rsqrt();
      const auto slope = weight * inverse.square() * sums[1];  // of what is added to dx, along x
      dx.sub_((x - along(mean, x)).mul_(along(slope, x)).add_(along(weight * inverse * sums[0], x)));
    } else {
      dx = at::zeros_like(x);
      dweight = dbias = at::zeros({features}, x.options());
    }
    const auto as = [](const at::Tensor& value, const at::Tensor& like) { return value.to(like.scalar_type()); };
    const bool has_bias = context->saved_data["bias"].toBool();
    return {as(dx, saved[0]),
            saved[1].defined() ? as(dweight, saved[1]) : at::Tensor(),
            has_bias ? dbias : at::Tensor(),
            {},
            {},
            {}};
  }
};

/// running += momentum * (value - running)
void track(const MaybeTensor& running, const at::Tensor& value, double momentum) {
  if (running && running->defined()) {
    const c10::NoGradGuard no_grad;
    running->mul_(1 - momentum).add_(value.to(running->scalar_type()), momentum);
  }
}

struct Statistics {
  MaybeTensor running_mean;
  MaybeTensor running_var;
  double momentum;
};

at::Tensor synchronized(const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                        const Statistics& statistics, double eps, const Group& group) {
  Moments moments;
  auto y = Normalize::apply(input, none_if_undefined(weight), none_if_undefined(bias), group, eps, &moments);
  track(statistics.running_mean, moments.mean, statistics.momentum);
  track(statistics.running_var, moments.variance * (moments.count / (moments.count - 1)), statistics.momentum);
  return y;
}

/// Takes the place of LibTorch's batch norm, and hands on to it what is not marked.
at::Tensor batch_norm(const at::Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                      const MaybeTensor& running_mean, const MaybeTensor& running_var, bool training, double momentum,
                      double eps, bool cudnn_enabled) {
  const auto* mark = mark_of(running_mean);
  mark = mark != nullptr ? mark : mark_of(weight);
  if (mark == nullptr || !training) {
    return at::native::batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps,
                                  cudnn_enabled);
  }
  return synchronized(input, weight, bias, {running_mean, running_var, momentum}, eps, mark->group);
}

// By the keys of devices: for the one that stands for all of them the dispatcher prefers LibTorch's own.
TORCH_LIBRARY_IMPL(aten, AutogradCPU, library) { library.impl("batch_norm", batch_norm); }
TORCH_LIBRARY_IMPL(aten, AutogradCUDA, library) { library.impl("batch_norm", batch_norm); }

/// False where there is nothing that could carry the mark.
template <class Norm>
bool mark(const Norm& norm, const Group& group) {
  const auto& carrier = norm.running_mean.defined() ? norm.running_mean : norm.weight;
  if (carrier.defined()) {
    torch::autograd::impl::add_hook(carrier, std::make_unique<SyncMark>(group));
  }
  return carrier.defined();
}

/// Whether it is a batch norm, and if so, whether it could be marked.
std::optional<bool> try_mark(const torch::nn::Module& module, const Group& group) {
  if (const auto* one = module.as<torch::nn::BatchNorm1dImpl>()) {
    return mark(*one, group);
  }
  if (const auto* two = module.as<torch::nn::BatchNorm2dImpl>()) {
    return mark(*two, group);
  }
  if (const auto* three = module.as<torch::nn::BatchNorm3dImpl>()) {
    return mark(*three, group);
  }
  return std::nullopt;
}

bool is_batch_norm(const torch::nn::Module& module) {
  return module.as<torch::nn::BatchNorm1dImpl>() != nullptr || module.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm3dImpl>() != nullptr;
}

}  // namespace

std::size_t synchronize_batch_norm(torch::nn::Module& module, const Group& group) {
  std::optional<Group> own;  // made only where there is a use for it
  std::size_t count = 0;
  for (const auto& item : module.named_modules()) {
    if (!is_batch_norm(*item.value())) {
      continue;
    }
    own = own ? own : own_group(group);
    const auto marked = try_mark(*item.value(), *own);
    if (marked && !*marked) {
      throw Exception({Code::invalid_argument,
                       fmt::format("synchronize_batch_norm: '{}' has neither running statistics nor weights; make it a "
                                   "tutti::SyncBatchNorm",
                                   item.key())});
    }
    count += marked ? 1 : 0;
  }
  return count;
}

SyncBatchNormImpl::SyncBatchNormImpl(const torch::nn::BatchNormOptions& how, const Group& group)
    : BatchNormImplBase(how), group_(own_group(group)) {}

at::Tensor SyncBatchNormImpl::forward(const at::Tensor& input) {
  _check_input_dim(input);
  const bool tracks = options.track_running_stats();
  if (!is_training() && tracks) {
    return BatchNormImplBase::forward(input);
  }
  if (tracks) {
    num_batches_tracked += 1;
  }
  const auto momentum =
      options.momentum() || !tracks ? options.momentum().value_or(0) : 1 / num_batches_tracked.item<double>();
  return synchronized(input, weight, bias, {running_mean, running_var, momentum}, options.eps(), group_);
}

void SyncBatchNormImpl::_check_input_dim(const at::Tensor& input) {
  if (input.dim() < 2 || input.size(1) != options.num_features()) {
    throw Exception(
        {Code::invalid_argument, fmt::format("SyncBatchNorm: an input of [batch, {}, ...] is needed, and not one of {}",
                                             options.num_features(), describe(input))});
  }
}

}  // namespace tutti
