#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "tutti/base/forked.h"
#include "tutti/comm/callbacks.h"
#include "tutti/comm/dtype.h"
#include "tutti/comm/prepare.h"
#include "tutti/comm/summands.h"
#include "tutti/comm/symmetric.h"
#include "tutti/comm/work.h"
#include "tutti/engine/engine.h"
#include "tutti/engine/progress.h"

namespace tutti {

struct BackendOptions {
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  /// What moves the bytes of a group of other ranks, for `split`; nothing when this backend cannot be split.
  std::function<std::unique_ptr<engine::Engine>(c10::intrusive_ptr<c10d::Store> store, Rank rank, int size)>
      make_engine = nullptr;
  /// Where the program of the calling thread is, for errors; asked when an operation is started outside of a SiteScope.
  engine::CallSite (*where)() = nullptr;
};

/// A c10d backend over one of our engines: what PyTorch's clients and our own groups call. Operations are checked on
/// the caller's thread. Those with asyncOp run in order on the progress thread, and their Work tells the end; those
/// without run on the caller's thread when nothing is under way, throw what went wrong, and return no Work.
/// Any thread, but collectives in the same order on every rank.
class Backend final : public c10d::Backend {
 public:
  Backend(std::unique_ptr<engine::Engine> engine, BackendOptions options);
  ~Backend() override;

  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<Tensors>;
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  /// Shuts down all that are left. For the end of a program whose threads must be over before something else is, as
  /// Python must.
  static void shut_down_all();

  const std::string getBackendName() const override { return "tutti"; }
  const std::string& engine_name() const { return engine_name_; }
  const std::string& shape() const { return shape_; }
  /// By what an operation is run from now on; the same on every rank. Waits for what is under way. Throws.
  void choose(engine::Op op, const engine::OpChoices& choices);
  /// By rank: what plans sent there so far. Waits for what is under way, and counts as an operation: all ranks ask
  /// alike. Throws.
  std::vector<engine::Links::Sent> sent();

  /// An operation on one tensor, done on this thread, without asking for memory. Throws what went wrong.
  void run_now(engine::Op op, const at::Tensor& tensor, const Reduce& reduce, Rank root, engine::CallSite where);
  void barrier_now(engine::CallSite where);

  /// The summands of all ranks, divided and rounded once, as contiguous floats; `can_round_sums` or not is the same on
  /// every rank. A result may be one of the addends.
  WorkPtr round_sums(const at::Tensor& result, const Summands& summands, std::int64_t divisor, bool async);
  bool can_round_sums() const { return can_round_sums_; }

  /// Runs that on the engine itself, on this thread, when nothing else does; throws what went wrong. For who measures
  /// engines, or chooses their plans: all ranks do the same, between the same operations.
  void run_on_engine(const engine::Progress::Task& task);

  // backend_ops.cpp: one operation
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs, const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits, const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;
  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;

  // backend_batches.cpp: several as one
  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override;
  WorkPtr endCoalescing() override;
  WorkPtr allreduce_coalesced(Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;

  // backend.cpp: everything around them
  bool supportsTensorAlloc(c10::DeviceIndex) override { return allocator_ != nullptr; }
  at::Tensor allocateTensor(long size, at::TensorOptions options) override;
  std::shared_ptr<c10::Allocator> getMemAllocator() override;
  SymmetricAllocator& allocator();
  /// Whether peers can reach the bytes of this tensor.
  bool reaches(const at::Tensor& tensor) const;

  bool supportsSplitting() const override { return options_.make_engine != nullptr; }
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<Options>& options) override;
  c10::intrusive_ptr<Options> getBackendOptions() override;
  void setTimeout(std::chrono::milliseconds timeout) override { timeout_ms_ = timeout.count(); }
  void setSequenceNumberForGroup() override {}  // it starts at 0 on every rank
  uint64_t getSequenceNumberForGroup() override { return submitted_ + progress_->runs(); }
  void registerOnCompletionHook(std::function<void(std::shared_ptr<c10d::WorkInfo>)>&& hook) override;
  void waitForPendingWorks() override;
  void enableCollectivesTiming() override {}  // always on
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override;

 private:
  /// What runs, and has to be ended by whoever comes first: the backend's own end, or that of the program.
  struct Core {
    explicit Core(std::unique_ptr<engine::Engine> engine) : progress(std::move(engine)) {}
    void end();

    engine::Progress progress;
    const std::shared_ptr<Callbacks> callbacks = std::make_shared<Callbacks>();
    std::shared_mutex open_mutex;
    bool open = true;
  };
  struct Made;
  static Made& made();

  /// How an operation is to be run.
  struct Operation {
    c10d::OpType type;
    const char* title;
    std::chrono::milliseconds timeout;
    bool async;
  };

  Deadline deadline_for(std::chrono::milliseconds asked) const;
  engine::CallSite site() const;
  /// Holds off shutdown while an operation is being started; throws when that has already been, or in a forked child.
  std::shared_lock<std::shared_mutex> hold_open();
  void check_possible(const PreparedCall& prepared);
  void run_blocking(const PreparedCall& prepared, std::chrono::milliseconds timeout);
  WorkPtr submit(const Operation& operation, PreparedCall prepared, const Tensors& outputs);
  WorkPtr submit_all(const Operation& operation, std::vector<PreparedCall> prepared, const Tensors& outputs);
  WorkPtr submit_task(const Operation& operation, engine::Progress::Task task, const Tensors& outputs);
  WorkPtr sparse_all_reduce(const at::Tensor& tensor, const c10d::AllreduceOptions& options);
  PreparedCall prepare_all_gather(const at::Tensor& output, const at::Tensor& input) const;
  PreparedCall prepare_reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                                      const c10d::ReduceOp& op) const;
  WorkPtr receive(c10d::OpType type, Tensors& tensors, Rank from, int tag);
  c10::intrusive_ptr<BackendWork> make_work(c10d::OpType type, const char* title, const Tensors& outputs,
                                            std::uint64_t sequence);
  std::uint64_t next_sequence() { return ++submitted_ + progress_->runs(); }
  bool is_forked() const { return process_generation() != process_; }
  void refuse_forked() const;
  engine::Done finisher(const c10::intrusive_ptr<BackendWork>& work) const;
  /// For who asked to be told of every end: of one that no Work stands for.
  template <class Run>
  void run_and_tell(const Operation& operation, Run&& run);

  const std::uint64_t process_;
  const std::string engine_name_;
  const std::string shape_;
  const bool can_round_sums_;
  BackendOptions options_;
  std::shared_ptr<engine::Reach> reach_;
  std::shared_ptr<SymmetricAllocator> allocator_;
  const std::shared_ptr<Core> core_;
  engine::Progress* const progress_;  // the core's
  std::mutex submit_mutex_;           // the order of the queue is the order of the sequence numbers
  std::atomic<std::int64_t> timeout_ms_;
  std::atomic<std::uint64_t> submitted_{0};                      // collectives that are waited for by their Work
  std::shared_ptr<Told<std::shared_ptr<c10d::WorkInfo>>> told_;  // who asked to be told of every end
  std::mutex coalescing_mutex_;
  std::map<std::thread::id, std::vector<WorkPtr>> coalescing_;  // what each thread started since startCoalescing
};

}  // namespace tutti
