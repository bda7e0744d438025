#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "tutti/base/error.h"
#include "tutti/base/forked.h"
#include "tutti/engine/progress.h"

namespace tutti {

/// One operation under way on a backend of ours, as c10d sees it. Completed once, by the thread that did the work.
class BackendWork final : public c10d::Work {
 public:
  /// `outputs` are what its future gives.
  BackendWork(int rank, c10d::OpType type, const char* title, std::vector<at::Tensor> outputs, std::uint64_t sequence);

  /// Ends it, well or with an error that `wait` and the future throw as tutti::Exception. Runs what hangs on the
  /// future.
  void complete(const Status& status);
  /// The same when there is no future yet, so that nothing can hang on it; false when there is one.
  bool complete_alone(const Status& status);

  /// For a receive from any rank: where the message came from.
  void set_source(int rank) { source_ = rank; }

  /// By what it is run, while that is there; for `abort`.
  void set_progress(const std::shared_ptr<engine::Progress>& progress) { progress_ = progress; }

  /// Ends it with an error, if it is not over. A collective that one rank leaves is over for all, and so is its group:
  /// whatever else is under way there ends as well, on every rank.
  void abort() override;

  std::vector<at::Tensor> result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  int sourceRank() const override { return source_; }
  uint64_t getSequencenumber() const override { return sequence_; }
  float getDuration() const override;

  /// For who asked to be told of every end.
  c10d::WorkInfo info() const;

 private:
  void set_over(const Status& status);
  void fulfil(c10::ivalue::Future& future) const;

  std::vector<at::Tensor> outputs_;
  std::uint64_t sequence_;
  std::uint64_t process_ = process_generation();
  std::weak_ptr<engine::Progress> progress_;
  int source_ = -1;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  mutable std::mutex future_mutex_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // made when somebody asks
  bool over_ = false;
  std::exception_ptr failure_;
  std::chrono::steady_clock::time_point ended_;
};

/// Several operations as one: over when all are, failed when one is.
class JoinedWork final : public c10d::Work {
 public:
  explicit JoinedWork(std::vector<c10::intrusive_ptr<c10d::Work>> parts);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  void abort() override;
  std::vector<at::Tensor> result() override;
  bool wait(std::chrono::milliseconds timeout) override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  std::vector<c10::intrusive_ptr<c10d::Work>> parts_;
};

}  // namespace tutti
