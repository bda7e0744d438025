#pragma once

#include <memory>

namespace tutti::gradient {

/// Who wants to know how a backward pass ends.
class BackwardListener {
 public:
  BackwardListener() = default;
  BackwardListener(const BackwardListener&) = delete;
  BackwardListener& operator=(const BackwardListener&) = delete;
  virtual ~BackwardListener() = default;

  /// All gradients are there. What it throws, `backward` throws.
  virtual void backward_ended() = 0;
  /// Something else threw; there will be no more gradients.
  virtual void backward_failed() noexcept = 0;
};

/// Tells the listener, if it still lives, when the backward pass that runs on this thread is over. One that runs inside
/// another (as activation checkpointing does) is not over before the outermost is. To be called from hooks of autograd,
/// once in each pass.
void tell_end_of_backward(std::weak_ptr<BackwardListener> listener);

}  // namespace tutti::gradient
