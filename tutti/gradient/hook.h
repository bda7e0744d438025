#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <ATen/core/Tensor.h>
#include <torch/serialize/archive.h>

#include "tutti/comm/group.h"

namespace tutti {

/// A full bucket, for who reduces it.
struct FullBucket {
  /// Of all its parameters, one behind the other: what is reduced, in place. It may lie elsewhere in the next step.
  at::Tensor gradients;
  std::span<const at::Tensor> parameters;  ///< whose they are
  std::span<const at::Tensor> views;       ///< each one's part of `gradients`, in its shape
  std::size_t index = 0;                   ///< of the bucket
  std::uint64_t generation = 0;            ///< changes when parameters are divided into buckets anew
  Reduce reduce = ReduceOp::avg;           ///< how ranks' gradients become one
};

/// What stands between a full bucket and its result: compression, or anything else. Called on the thread that runs
/// backward, for one bucket after the other, in the same order on all ranks. One for each DataParallel, also of ranks
/// that are threads: it may remember things of buckets.
class Hook {
 public:
  Hook() = default;
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;
  virtual ~Hook() = default;

  /// Starts the reduction, in place. The Work's wait() is called once, by the thread that called this; then the result
  /// is there. (With StepAhead by whichever thread needs the result first, so that wait() must not start operations of
  /// all ranks.)
  virtual Work reduce(const FullBucket& bucket, const Group& group) = 0;

  /// What it remembers from one step to the next, if anything.
  virtual void save(torch::serialize::OutputArchive& archive) const { (void)archive; }
  virtual void load(torch::serialize::InputArchive& archive) { (void)archive; }

  /// Makes it that one's; throws where another has it.
  void claim(const void* owner);
  void release();

 private:
  std::atomic<const void*> owner_ = nullptr;
};

/// What is done without a hook.
std::shared_ptr<Hook> all_reduce_hook();

/// Sends gradients as that type, kFloat16 or kBFloat16: half the bytes of float32. Ranks' values are added up in
/// float32 and rounded once. `inner` reduces what is sent. Gradients that are as small already are sent as they are.
std::shared_ptr<Hook> cast_hook(at::ScalarType type, std::shared_ptr<Hook> inner = all_reduce_hook());

/// An all-reduce that averages on backends, too, that only know sums.
Work all_reduce(const at::Tensor& tensor, const Reduce& reduce, const Group& group);

/// The same work, that does one more thing when it is waited for.
Work then(Work work, std::function<void()> more);

/// For how long it was under way, now that it was waited for; nothing where only its backend knows.
std::optional<std::chrono::duration<double>> own_duration(const Work& work);

}  // namespace tutti
