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

/// Tells the listener, while it lives, before any operator of LibTorch gets a tensor in that memory, on whatever
/// thread. Who follows a pointer into it is not seen. While anything is watched, each operator takes about a
/// microsecond longer. Who watches the same memory several times stops as often.
void watch_use(const c10::Storage& storage, const std::shared_ptr<UseListener>& listener);
void stop_watching(const c10::Storage& storage, const UseListener* listener);

}  // namespace tutti::gradient
