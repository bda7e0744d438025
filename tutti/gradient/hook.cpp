#include "tutti/gradient/hook.h"

#include <unordered_map>
#include <utility>

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include "tutti/comm/symmetric.h"
#include "tutti/comm/work.h"

namespace tutti {
namespace {

/// Waits for another, then does more.
class ThenWork final : public c10d::Work {
 public:
  ThenWork(tutti::Work first, std::function<void()> more) : first_(std::move(first)), more_(std::move(more)) {}

  bool wait(std::chrono::milliseconds timeout) override {
    timeout == kNoTimeout ? first_.wait() : first_.wait(timeout);
    if (auto more = std::exchange(more_, nullptr)) {
      const auto began = Clock::now();
      more();
      more_took_ = Clock::now() - began;
    }
    return true;
  }
  bool isCompleted() override { return first_.done() && !more_; }
  bool isSuccess() const override { return !more_; }

  std::optional<std::chrono::duration<double>> duration() const {
    const auto first = own_duration(first_);
    return first ? std::optional(*first + more_took_) : std::nullopt;
  }

 private:
  using Clock = std::chrono::steady_clock;

  tutti::Work first_;
  std::function<void()> more_;
  std::chrono::duration<double> more_took_{0};
};

class AllReduceHook final : public Hook {
 public:
  Work reduce(const FullBucket& bucket, const Group& group) override {
    return all_reduce(bucket.gradients, bucket.reduce, group);
  }
};

class CastHook final : public Hook {
 public:
  CastHook(at::ScalarType type, std::shared_ptr<Hook> inner) : type_(type), inner_(std::move(inner)) {}

  Work reduce(const FullBucket& bucket, const Group& group) override {
    const c10::NoGradGuard no_grad;
    if (!bucket.gradients.is_floating_point() ||
        bucket.gradients.element_size() <= static_cast<std::int64_t>(c10::elementSize(type_))) {
      return inner_->reduce(bucket, group);
    }
    auto& small = small_[bucket.index];
    if (!small.defined() || small.numel() != bucket.gradients.numel()) {
      const auto options = bucket.gradients.options().dtype(type_);
      small = is_symmetric(bucket.gradients, group) ? symmetric_empty(bucket.gradients.sizes(), options, group)
                                                    : at::empty(bucket.gradients.sizes(), options);
    }
    small.copy_(bucket.gradients);
    auto sent = bucket;
    sent.gradients = small;
    return then(inner_->reduce(sent, group), [small, gradients = bucket.gradients] {
      const c10::NoGradGuard none;
      gradients.copy_(small);
    });
  }

  void save(torch::serialize::OutputArchive& archive) const override { inner_->save(archive); }
  void load(torch::serialize::InputArchive& archive) override { inner_->load(archive); }

 private:
  const at::ScalarType type_;
  const std::shared_ptr<Hook> inner_;
  std::unordered_map<std::size_t, at::Tensor> small_;  // by bucket
};

}  // namespace

void Hook::claim(const void* owner) {
  const void* nobody = nullptr;
  if (!owner_.compare_exchange_strong(nobody, owner)) {
    throw Exception(
        {Code::invalid_argument,
         "DataParallel: its hook is that of another one already; make one for each model, and for each rank "
         "that is a thread"});
  }
}

void Hook::release() { owner_ = nullptr; }

std::shared_ptr<Hook> all_reduce_hook() { return std::make_shared<AllReduceHook>(); }

std::shared_ptr<Hook> cast_hook(at::ScalarType type, std::shared_ptr<Hook> inner) {
  if (type != at::kHalf && type != at::kBFloat16) {
    throw Exception({Code::invalid_argument, "cast_hook: gradients can be sent as float16 or bfloat16"});
  }
  if (!inner) {
    throw Exception({Code::invalid_argument, "cast_hook: no inner hook given"});
  }
  return std::make_shared<CastHook>(type, std::move(inner));
}

Work all_reduce(const at::Tensor& tensor, const Reduce& reduce, const Group& group) {
  const bool ours = !group.shape().empty();
  if (ours || (reduce.op != ReduceOp::avg && reduce.op != ReduceOp::premul_sum)) {
    return group.all_reduce(tensor, reduce);
  }
  const auto factor = reduce.op == ReduceOp::avg ? 1.0 / group.size() : reduce.factor;
  return then(group.all_reduce(tensor, ReduceOp::sum), [tensor, factor] {
    const c10::NoGradGuard no_grad;
    tensor.mul_(factor);
  });
}

Work then(Work work, std::function<void()> more) {
  return Work(c10::make_intrusive<ThenWork>(std::move(work), std::move(more)));
}

std::optional<std::chrono::duration<double>> own_duration(const Work& work) {
  const auto* const under = work.c10d_work().get();
  if (const auto* const then = dynamic_cast<const ThenWork*>(under)) {
    return then->duration();
  }
  if (dynamic_cast<const BackendWork*>(under) == nullptr) {
    return std::nullopt;
  }
  return std::chrono::duration<double, std::milli>(under->getDuration());
}

}  // namespace tutti
