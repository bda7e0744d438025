#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "tutti/base/rank.h"
#include "tutti/comm/dtype.h"
#include "tutti/comm/exception.h"

namespace tutti {

/// Something under way. Waiting for it is the caller's to do before touching the tensors.
class Work {
 public:
  explicit Work(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}

  /// Blocks until it is over; throws what went wrong.
  void wait() { work_->wait(); }
  bool done() { return work_->isCompleted(); }
  /// Completed with the result tensors, or with the error.
  c10::intrusive_ptr<c10::ivalue::Future> future() { return work_->getFuture(); }
  const c10::intrusive_ptr<c10d::Work>& c10d_work() const { return work_; }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
};

/// Ranks that communicate. A Group is a handle on a c10d::ProcessGroup and converts to one; any backend can carry it.
/// Copies are the same group. Any thread; collectives in the same order on every member, each returns at once.
/// Failures throw tutti::Exception: at the call for what this rank did wrong, from wait() for the rest.
class Group {
 public:
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

  /// The group of these members (ranks of this group, in the order wanted), or nothing when this rank is none of them.
  /// Only the members need to call it; they do so with the same list, and in the same order as other groups.
  std::optional<Group> subgroup(const std::vector<Rank>& ranks) const;

  /// One group for each colour, its members in the order of `key`, then rank. All members of this group take part; one
  /// with a negative colour gets nothing.
  std::optional<Group> split(int colour, int key = 0) const;

  Work all_reduce(at::Tensor tensor, ReduceOp op = ReduceOp::sum) const;
  Work reduce(at::Tensor tensor, Rank root, ReduceOp op = ReduceOp::sum) const;
  Work broadcast(at::Tensor tensor, Rank root = Rank{0}) const;
  Work all_gather(std::vector<at::Tensor> outputs, at::Tensor input) const;
  Work all_gather(at::Tensor output, at::Tensor input) const;
  Work reduce_scatter(at::Tensor output, std::vector<at::Tensor> inputs, ReduceOp op = ReduceOp::sum) const;
  Work reduce_scatter(at::Tensor output, at::Tensor input, ReduceOp op = ReduceOp::sum) const;
  Work all_to_all(std::vector<at::Tensor> outputs, std::vector<at::Tensor> inputs) const;
  /// Rows of `input` go to the ranks in order: equal parts, or as many to each as the splits say.
  Work all_to_all(at::Tensor output, at::Tensor input, std::vector<int64_t> output_splits = {},
                  std::vector<int64_t> input_splits = {}) const;
  /// `outputs` at the root only, one per rank.
  Work gather(std::vector<at::Tensor> outputs, at::Tensor input, Rank root = Rank{0}) const;
  /// `inputs` at the root only, one per rank.
  Work scatter(at::Tensor output, std::vector<at::Tensor> inputs, Rank root = Rank{0}) const;
  Work send(at::Tensor tensor, Rank to, int tag = 0) const;
  Work receive(at::Tensor tensor, Rank from, int tag = 0) const;
  Work barrier() const;

  const c10::intrusive_ptr<c10d::ProcessGroup>& process_group() const;
  operator const c10::intrusive_ptr<c10d::ProcessGroup>&() const { return process_group(); }

  struct State;  // inside the room
  explicit Group(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  c10::intrusive_ptr<c10d::Backend> backend(const at::Tensor& tensor) const;

  std::shared_ptr<State> state_;
};

}  // namespace tutti
