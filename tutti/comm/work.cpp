#include "tutti/comm/work.h"

#include <ATen/core/jit_type.h>
#include <ATen/record_function.h>
#include <fmt/format.h>

#include "tutti/comm/exception.h"

namespace tutti {
namespace {

auto tensor_list() { return c10::ListType::create(c10::TensorType::get()); }

/// c10d prepares a profiler event for a titled work, whether somebody profiles or not.
const char* title_if_profiled(const char* title) { return at::hasCallbacks() ? title : nullptr; }

}  // namespace

BackendWork::BackendWork(int rank, c10d::OpType type, const char* title, std::vector<at::Tensor> outputs,
                         std::uint64_t sequence)
    : c10d::Work(rank, type, title_if_profiled(title), outputs), outputs_(std::move(outputs)), sequence_(sequence) {}

/// With the lock.
void BackendWork::set_over(const Status& status) {
  ended_ = std::chrono::steady_clock::now();
  failure_ = status ? nullptr : std::make_exception_ptr(Exception(status.error()));
  over_ = true;
}

bool BackendWork::complete_alone(const Status& status) {
  {
    const std::scoped_lock lock(future_mutex_);
    if (future_) {
      return false;
    }
    set_over(status);
  }
  finish(failure_);
  return true;
}

void BackendWork::complete(const Status& status) {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::scoped_lock lock(future_mutex_);
    set_over(status);
    future = future_;
  }
  // The future first: who was woken by wait() may ask it for the result. A callback of the user's that throws is the
  // user's: it must end neither this thread nor the wait of others.
  try {
    if (future) {
      fulfil(*future);
    }
  } catch (const std::exception& thrown) {
    TORCH_WARN("a callback of a tutti operation threw: ", thrown.what());
  } catch (...) {
    TORCH_WARN("a callback of a tutti operation threw something that is no std::exception");
  }
  finish(failure_);
}

void BackendWork::fulfil(c10::ivalue::Future& future) const {
  if (failure_) {
    future.setError(failure_);
  } else {
    future.markCompleted(c10::IValue(outputs_));
  }
}

c10::intrusive_ptr<c10::ivalue::Future> BackendWork::getFuture() {
  const std::scoped_lock lock(future_mutex_);
  if (!future_) {
    future_ = c10::make_intrusive<c10::ivalue::Future>(tensor_list());
    if (over_) {
      fulfil(*future_);
    }
  }
  return future_;
}

void BackendWork::abort() {
  if (process_ != process_generation()) {
    return;
  }
  const auto is_over = [this] {
    const std::scoped_lock lock(future_mutex_);
    return over_;
  };
  if (const auto progress = progress_.lock(); progress && !is_over()) {
    progress->abort({Code::aborted, fmt::format("rank {} aborted operation {}", rank_, sequence_), Rank{rank_}});
  }
}

float BackendWork::getDuration() const {
  const std::scoped_lock lock(future_mutex_);
  TORCH_CHECK(over_, "getDuration: the operation is not over yet; wait for it first");
  return std::chrono::duration<float, std::milli>(ended_ - started_).count();
}

c10d::WorkInfo BackendWork::info() const {
  const std::scoped_lock lock(future_mutex_);
  return {opType_, sequence_, started_, ended_, std::chrono::duration<float>(ended_ - started_)};
}

JoinedWork::JoinedWork(std::vector<c10::intrusive_ptr<c10d::Work>> parts)
    : c10d::Work(-1, c10d::OpType::COALESCED), parts_(std::move(parts)) {}

bool JoinedWork::isCompleted() {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->isCompleted(); });
}

void JoinedWork::abort() {
  for (const auto& part : parts_) {
    part->abort();
  }
}

bool JoinedWork::isSuccess() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->isSuccess(); });
}

std::exception_ptr JoinedWork::exception() const {
  for (const auto& part : parts_) {
    if (auto thrown = part->exception()) {
      return thrown;
    }
  }
  return nullptr;
}

std::vector<at::Tensor> JoinedWork::result() {
  std::vector<at::Tensor> all;
  for (const auto& part : parts_) {
    const auto tensors = part->result();
    all.insert(all.end(), tensors.begin(), tensors.end());
  }
  return all;
}

bool JoinedWork::wait(std::chrono::milliseconds timeout) {
  // All of them, also after one has failed: the caller may free the tensors afterwards.
  std::exception_ptr failure;
  for (const auto& part : parts_) {
    try {
      part->wait(timeout);
    } catch (...) {
      failure = failure ? failure : std::current_exception();
    }
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> JoinedWork::getFuture() {
  c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(c10::FutureType::create(tensor_list()));
  for (const auto& part : parts_) {
    futures.push_back(part->getFuture());
  }
  auto tensors = result();
  return c10::collectAll(futures)->then(
      [tensors = std::move(tensors)](c10::ivalue::Future& all) {
        for (const auto& each : all.value().toListRef()) {
          (void)each.toFuture()->value();  // throws what went wrong
        }
        return c10::IValue(tensors);
      },
      tensor_list());
}

}  // namespace tutti
