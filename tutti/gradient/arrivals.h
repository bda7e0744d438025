#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/function.h>

#include "tutti/gradient/model_parts.h"

namespace tutti::gradient {

/// Who wants to know when gradients are there.
class ArrivalListener {
 public:
  ArrivalListener() = default;
  ArrivalListener(const ArrivalListener&) = delete;
  ArrivalListener& operator=(const ArrivalListener&) = delete;
  virtual ~ArrivalListener() = default;

  /// There is more in the gradient of the parameter of that number: `incoming` was added, or has become it. On the
  /// thread of autograd. Hooks of others that come after this one may find it changed.
  virtual void arrived(std::size_t number, const at::Tensor& incoming) = 0;
};

/// Tells when parameters' gradients are there, in every backward pass, until it is gone.
class Arrivals {
 public:
  Arrivals() = default;
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;
  ~Arrivals() { clear(); }

  /// Tells the listener, if it still lives.
  void add(const at::Tensor& parameter, std::size_t number, const std::weak_ptr<ArrivalListener>& listener);
  void clear();

 private:
  using NodePtr = decltype(torch::autograd::get_current_node());
  std::vector<std::pair<NodePtr, std::uintptr_t>> arrivals_;  // nodes would be gone and made anew if nobody held them
};

}  // namespace tutti::gradient
