#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <torch/nn/module.h>

#include "tutti/comm/group.h"
#include "tutti/gradient/options.h"
#include "tutti/gradient/step_report.h"

namespace tutti {

namespace gradient {
class Synchronizer;
}  // namespace gradient

/// Everything of DataParallel that does not depend on the module's type.
class DataParallelBase {
 public:
  /// While it lives, backward passes add up gradients on this rank and send nothing. The next pass after it sends all.
  class [[nodiscard]] Pause {
   public:
    explicit Pause(std::shared_ptr<gradient::Synchronizer> synchronizer);
    Pause(Pause&&) = default;
    Pause& operator=(Pause&&) = delete;
    ~Pause();

   private:
    std::shared_ptr<gradient::Synchronizer> synchronizer_;
  };
  Pause no_sync() { return Pause(synchronizer_); }

  /// For Mean::per_sample: a loss that is the mean of so many samples (tokens, ...) of this rank, made ready for
  /// backward: multiplied by their number. Once for each loss. Gradients then are those of the mean over all samples of
  /// all ranks, however many each of them has.
  at::Tensor weigh(const at::Tensor& loss, double samples);

  /// This rank has no more data (options.uneven_data): it takes part in what the others do, and returns when all ranks
  /// have called it. With `step` (optimizer step and zero_grad), which is called after each of the others' passes, it
  /// stays as they are; without, it gets their parameters and buffers at the end.
  void join(const std::function<void()>& step = nullptr);

  /// What synchronization did in the last pass; nothing before the first.
  std::optional<StepReport> report() const;

  const Group& group() const { return group_; }

 protected:
  DataParallelBase(std::shared_ptr<torch::nn::Module> module, Group group, const DataParallelOptions& options);

 private:
  friend class StepAhead;

  const std::shared_ptr<torch::nn::Module> held_;
  const Group group_;
  const DataParallelOptions options_;
  std::shared_ptr<gradient::Synchronizer> synchronizer_;
};

/// A module whose gradients are, at the end of every backward pass, the average of those of all ranks.
///
///   tutti::DataParallel model(net, world.mesh("dp=4")["dp"]);
///   auto loss = cross_entropy(model->forward(batch.x), batch.y);
///   loss.backward();     // full buckets leave while this still runs; when it returns, gradients are there
///   optimizer.step();
///
/// Made by all ranks, with the same module: it gets rank 0's parameters and buffers; ranks whose modules differ all get
/// an error that names a parameter and two ranks. Parameters that are not trained when it is made stay out of it.
/// The module is used as it is, with any way to compute a loss. What goes wrong while gradients travel, backward
/// throws: then no gradients are set, and parameters are as they were. Gradients are views of buckets: who wants to
/// keep one across steps copies it. One thread at a time.
template <std::derived_from<torch::nn::Module> Module>
class DataParallel : public DataParallelBase {
 public:
  DataParallel(std::shared_ptr<Module> module, Group group, const DataParallelOptions& options = {})
      : DataParallelBase(module, std::move(group), options), module_(std::move(module)) {}
  DataParallel(const torch::nn::ModuleHolder<Module>& module, Group group, const DataParallelOptions& options = {})
      : DataParallel(module.ptr(), std::move(group), options) {}

  Module* operator->() const { return module_.get(); }
  Module& operator*() const { return *module_; }
  const std::shared_ptr<Module>& module() const { return module_; }

 private:
  std::shared_ptr<Module> module_;
};

template <class Holder, class... More>
  requires requires { typename Holder::ContainedType; }
DataParallel(const Holder&, More...) -> DataParallel<typename Holder::ContainedType>;

}  // namespace tutti
