#include "tutti/comm/work.h"

#include <ATen/core/jit_type.h>

#include "tutti/comm/exception.h"

namespace tutti {

BackendWork::BackendWork(int rank, c10d::OpType type, const char* title, std::vector<at::Tensor> outputs,
                         std::uint64_t sequence)
    : c10d::Work(rank, type, title, outputs),
      outputs_(std::move(outputs)),
      future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))),
      sequence_(sequence) {}

void BackendWork::complete(const Status& status) {
  using Milliseconds = std::chrono::duration<float, std::milli>;
  milliseconds_ = Milliseconds(std::chrono::steady_clock::now() - started_).count();
  const auto exception = status ? nullptr : std::make_exception_ptr(Exception(status.error()));
  // The future first: who was woken by wait() may ask it for the result. A callback of the user's that throws is the
  // user's: it must end neither this thread nor the wait of others.
  try {
    if (status) {
      future_->markCompleted(c10::IValue(outputs_));
    } else {
      future_->setError(exception);
    }
  } catch (const std::exception& thrown) {
    TORCH_WARN("a callback of a tutti operation threw: ", thrown.what());
  }
  finish(exception);
}

float BackendWork::getDuration() const {
  TORCH_CHECK(milliseconds_ >= 0, "getDuration: the operation is not over yet; wait for it first");
  return milliseconds_;
}

}  // namespace tutti
