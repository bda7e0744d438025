#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <torch/csrc/autograd/function.h>

#include "tutti/gradient/model_parts.h"

namespace tutti::gradient {

/// Tells when parameters' gradients are there, in every backward pass, until it is gone.
class Arrivals {
 public:
  Arrivals() = default;
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;
  ~Arrivals() { clear(); }

  /// The parameter's number, and what came in and was set or added to its gradient.
  using Arrived = std::function<void(std::size_t number, const at::Tensor& incoming)>;

  /// Calls `arrived`, on the thread of autograd, when there is more in a parameter's gradient.
  void add(const at::Tensor& parameter, std::size_t number, const Arrived& arrived);
  void clear();

 private:
  using NodePtr = decltype(torch::autograd::get_current_node());
  std::vector<std::pair<NodePtr, std::uintptr_t>> arrivals_;  // nodes would be gone and made anew if nobody held them
};

}  // namespace tutti::gradient
