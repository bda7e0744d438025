#include "tutti/gradient/data_parallel.h"

#include "tutti/gradient/steady_heap.h"
#include "tutti/gradient/synchronizer.h"

namespace tutti {
namespace {

std::vector<NamedTensor> trained(std::vector<NamedTensor> parameters) {
  std::erase_if(parameters, [](const NamedTensor& one) { return !one.tensor.requires_grad(); });
  return parameters;
}

}  // namespace

DataParallelBase::Pause::Pause(std::shared_ptr<gradient::Synchronizer> synchronizer)
    : synchronizer_(std::move(synchronizer)) {
  synchronizer_->pause();
}

DataParallelBase::Pause::~Pause() {
  if (synchronizer_) {
    synchronizer_->resume();
  }
}

DataParallelBase::DataParallelBase(std::shared_ptr<torch::nn::Module> module, Group group,
                                   const DataParallelOptions& options)
    : held_(std::move(module)), group_(std::move(group)), options_(options) {
  if (!held_) {
    throw Exception({Code::invalid_argument, "DataParallel: no module given"});
  }
  const auto parameters = parameters_of(*held_);
  const auto buffers = buffers_of(*held_);
  check_same(parameters, "parameter", group_);
  check_same(buffers, "buffer", group_);
  broadcast(parameters, group_);
  broadcast(buffers, group_);
  synchronizer_ = std::make_shared<gradient::Synchronizer>(trained(parameters), buffers, group_, options_);
  synchronizer_->attach();
  gradient::keep_freed_memory();  // gradients that lie in buckets keep none any more
}

at::Tensor DataParallelBase::weigh(const at::Tensor& loss, double samples) {
  if (options_.mean != Mean::per_sample) {
    throw Exception({Code::invalid_argument, "weigh: only Mean::per_sample has a use for numbers of samples"});
  }
  if (!(samples >= 0)) {
    throw Exception({Code::invalid_argument, "weigh: a number of samples cannot be negative"});
  }
  synchronizer_->count(samples);
  return loss * samples;
}

void DataParallelBase::join(const std::function<void()>& step) {
  const auto from = synchronizer_->join(step);
  broadcast(parameters_of(*held_), group_, from);
  broadcast(buffers_of(*held_), group_, from);
}

std::optional<StepReport> DataParallelBase::report() const { return synchronizer_->report(); }

}  // namespace tutti
