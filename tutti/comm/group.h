#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "tutti/base/rank.h"
#include "tutti/comm/dtype.h"
#include "tutti/comm/exception.h"
#include "tutti/comm/summands.h"

namespace tutti {

class Backend;

/// Something under way. Waiting for it is the caller's to do before touching the tensors.
class Work {
 public:
  /// Null stands for something that is over.
  explicit Work(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}

  /// Blocks until it is over; throws what went wrong.
  void wait() {
    if (work_) {
      work_->wait();
    }
  }
  /// The same, for so long at most; then throws, and the operation goes on.
  void wait(std::chrono::milliseconds timeout) {
    if (work_) {
      work_->wait(timeout);
    }
  }
  bool done() { return !work_ || work_->isCompleted(); }
  /// For `receive_any`, when it is over: where the message came from.
  Rank source() const { return Rank{work_ ? work_->sourceRank() : -1}; }
  /// Completed with the result tensors, or with the error. Not of a blocking group, whose operations are over.
  c10::intrusive_ptr<c10::ivalue::Future> future() { return work_->getFuture(); }
  /// Null when a blocking group made it.
  const c10::intrusive_ptr<c10d::Work>& c10d_work() const { return work_; }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

/// Ranks that communicate. A Group is a handle on a c10d::ProcessGroup and converts to one; any backend can carry it.
/// Copies are the same group. Any thread; collectives in the same order on every member. Each returns at once, and its
/// Work tells the end; those of `blocking()` return when they are done.
/// Failures throw tutti::Exception: at the call for what this rank did wrong, from wait() for the rest.
/// The last argument of each is where it was called, for the error when ranks call different things; leave it out.
class Group {
 public:
  using Site = std::source_location;

  /// Takes any process group as it is. Its sub-groups are made by ours, over its store. All ranks that make sub-groups
  /// do so from handles that they took in the same order.
  static Group from(c10::intrusive_ptr<c10d::ProcessGroup> process_group);

  Rank rank() const;
  int size() const;
  const std::string& name() const;
  /// The members' ranks in the world, by their rank here.
  const std::vector<Rank>& members() const;
  /// What moves the bytes: "shm", "local", or the name of a foreign backend.
  std::string engine() const;

  /// What that is made of, as tuning knows it: "shm 4", "mpi (Open MPI v5.0.11) 2+2"; empty when it is not ours.
  std::string shape() const;

  /// By what an operation ("all_reduce") is run here from now on, as TUTTI_ALL_REDUCE says it for all groups:
  /// "ring/4", "at_once,64Ki:in_slices", "own" for what Tutti thinks best (docs/tuning.md). All ranks choose the same.
  /// Waits for what is under way. Throws when it cannot be, and changes nothing.
  void choose(std::string_view operation, std::string_view choices) const;

  /// The group of these members (ranks of this group, in the order wanted), or nothing when this rank is none of them.
  /// Only the members need to call it; they do so with the same list, and in the same order as other groups.
  std::optional<Group> subgroup(const std::vector<Rank>& ranks) const;

  /// One group for each colour, its members in the order of `key`, then rank. All members of this group take part; one
  /// with a negative colour gets nothing.
  std::optional<Group> split(int colour, int key = 0) const;

  /// The same group, whose collectives return when they are done, on the calling thread: quicker than to start one and
  /// wait for it.
  Group blocking() const;

  Work all_reduce(const at::Tensor& tensor, Reduce reduce = ReduceOp::sum, Site site = Site::current()) const;
  /// Several as one.
  Work all_reduce(std::vector<at::Tensor> tensors, Reduce reduce = ReduceOp::sum, Site site = Site::current()) const;
  /// Reproducible sums under way on all ranks, divided by the same number and rounded once, into a contiguous tensor
  /// of floats, which may be one of this rank's addends. Quickest where all of it is symmetric. Only where
  /// `can_round_sums`: where an engine of ours carries the group.
  Work round_sums(const at::Tensor& result, const Summands& summands, std::int64_t divisor = 1,
                  Site site = Site::current()) const;
  bool can_round_sums() const;
  Work reduce(const at::Tensor& tensor, Rank root, Reduce reduce = ReduceOp::sum, Site site = Site::current()) const;
  Work broadcast(const at::Tensor& tensor, Rank root = Rank{0}, Site site = Site::current()) const;
  /// Outputs may have different sizes, each that of its rank's input.
  Work all_gather(std::vector<at::Tensor> outputs, at::Tensor input, Site site = Site::current()) const;
  Work all_gather(at::Tensor output, at::Tensor input, Site site = Site::current()) const;
  Work reduce_scatter(at::Tensor output, std::vector<at::Tensor> inputs, Reduce reduce = ReduceOp::sum,
                      Site site = Site::current()) const;
  Work reduce_scatter(at::Tensor output, at::Tensor input, Reduce reduce = ReduceOp::sum,
                      Site site = Site::current()) const;
  Work all_to_all(std::vector<at::Tensor> outputs, std::vector<at::Tensor> inputs, Site site = Site::current()) const;
  /// Rows of `input` go to the ranks in order: equal parts, or as many to each as the splits say.
  Work all_to_all(at::Tensor output, at::Tensor input, std::vector<int64_t> output_splits = {},
                  std::vector<int64_t> input_splits = {}, Site site = Site::current()) const;
  /// `outputs` at the root only, one per rank.
  Work gather(std::vector<at::Tensor> outputs, at::Tensor input, Rank root = Rank{0},
              Site site = Site::current()) const;
  /// `inputs` at the root only, one per rank.
  Work scatter(at::Tensor output, std::vector<at::Tensor> inputs, Rank root = Rank{0},
               Site site = Site::current()) const;
  Work send(at::Tensor tensor, Rank to, int tag = 0) const;
  Work receive(at::Tensor tensor, Rank from, int tag = 0) const;
  Work receive_any(at::Tensor tensor, int tag = 0) const;
  Work barrier(Site site = Site::current()) const;
  /// Blocks until all ranks are here; throws after that time, naming those that are not.
  void monitored_barrier(std::chrono::milliseconds timeout, Site site = Site::current()) const;

  /// Ends everything in flight on every rank with an error. The group is of no more use.
  void abort() const;

  const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const;
  operator const c10::intrusive_ptr<c10d::ProcessGroup>&() const { return process_group(); }

  struct State;  // inside the room
  explicit Group(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  c10::intrusive_ptr<c10d::Backend> backend(const at::Tensor& tensor) const;
  Backend* at_once(const at::Tensor& tensor) const;
  Work finish(c10::intrusive_ptr<c10d::Work> work) const;
  template <class Options>
  Options asked(Options options) const {
    options.asyncOp = !blocking_;
    return options;
  }

  std::shared_ptr<State> state_;
  bool blocking_ = false;
};

}  // namespace tutti
