#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "tutti/comm/work.h"
#include "tutti/engine/engine.h"
#include "tutti/engine/progress.h"

namespace tutti {

/// Tensors of one operation, made ready for an engine: blocks of contiguous bytes, the tensors that own them, and
/// copies to be made afterwards into outputs that were not contiguous.
struct PreparedCall {
  std::string_view name;  ///< of the operation, for errors
  engine::Call call;
  std::vector<at::Tensor> kept;
  std::vector<std::pair<at::Tensor, at::Tensor>> copy_back;  ///< to, from; see copy_results

  void add_input(const at::Tensor& tensor);
  void add_output(const at::Tensor& tensor);
  /// In and out at once; a tensor that is not contiguous travels as one contiguous copy.
  void add_in_place(const at::Tensor& tensor, bool in, bool out);
};

/// A c10d backend over one of our engines: what PyTorch's clients and our own groups call. Operations are checked on
/// the caller's thread, run in order by the progress thread, and their Work tells the end.
/// Any thread, but collectives in the same order on every rank.
class Backend final : public c10d::Backend {
 public:
  Backend(std::unique_ptr<engine::Engine> engine, std::chrono::milliseconds timeout);
  ~Backend() override;

  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  const std::string getBackendName() const override { return "tutti"; }
  const std::string& engine_name() const { return engine_name_; }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;

  void setTimeout(std::chrono::milliseconds timeout) override { timeout_ms_ = timeout.count(); }
  void setSequenceNumberForGroup() override {}  // it starts at 0 on every rank
  uint64_t getSequenceNumberForGroup() override { return sequence_; }
  void abort() override;
  void shutdown() override;

 private:
  Deadline deadline_for(std::chrono::milliseconds asked) const;
  /// Holds off shutdown while an operation is being started; throws when that has already been, or in a forked child.
  std::shared_lock<std::shared_mutex> hold_open();
  WorkPtr submit(c10d::OpType type, const char* title, PreparedCall prepared, Tensors outputs,
                 std::chrono::milliseconds timeout);
  WorkPtr receive(c10d::OpType type, Tensors& tensors, Rank from, int tag);

  const pid_t process_;
  const std::string engine_name_;
  std::unique_ptr<engine::Progress> progress_;
  std::shared_mutex open_mutex_;
  bool open_ = true;
  std::mutex submit_mutex_;  // the order of the queue is the order of the sequence numbers
  std::atomic<std::int64_t> timeout_ms_;
  std::atomic<std::uint64_t> sequence_{0};
};

}  // namespace tutti
