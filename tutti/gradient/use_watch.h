#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

namespace tutti::gradient {

/// Who wants to do something before memory is used.
class UseListener {
 public:
  UseListener() = default;
  UseListener(const UseListener&) = delete;
  UseListener& operator=(const UseListener&) = delete;
  virtual ~UseListener() = default;

  /// An operator is about to read or write what `storage` holds, on this thread; it goes on when this returns. While it
  /// runs, operators on this thread are not told of.
  virtual void about_to_be_used(const c10::StorageImpl* storage) noexcept = 0;
};

/// Tells the listener, while it lives, before any operator of LibTorch gets the tensor, or another one in the same
/// memory, on whatever thread. Who follows a pointer into it is not seen. While anything is watched, each operator
/// takes about a microsecond longer. Who watches several tensors in the same memory stops as often.
void watch_use(const at::Tensor& tensor, const std::weak_ptr<UseListener>& listener);
void stop_watching(const at::Tensor& tensor);

}  // namespace tutti::gradient
