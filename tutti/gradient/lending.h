#pragma once

#include <cstddef>
#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

namespace tutti::gradient {

/// Who may have better memory for a tensor than the usual: a bucket's, for a gradient that will have to lie there.
class Lender {
 public:
  Lender() = default;
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;
  virtual ~Lender() = default;

  /// Memory for a tensor that is being made on this thread: by `lend`, or the usual.
  virtual c10::DataPtr place(std::size_t bytes, c10::Allocator& usual) = 0;
};

/// Before the first loan, and better before other threads make tensors: from then on CPU tensors get their memory
/// through us. (An allocator that a program sets later takes our place, and nothing is lent any more.)
void prepare_lending();

/// From now on `lender`, while it lives, is asked on this thread for the memory of every CPU tensor of at least
/// Foresight::kSmallest bytes; until it is stopped, or another one starts.
void start_lending(std::weak_ptr<Lender> lender);
void stop_lending() noexcept;

/// The tensor's memory, as another's. It stays until that other one is gone, too. It must not be lent already.
c10::DataPtr lend(const at::Tensor& tensor);
/// Whether somebody has it still.
bool is_lent(const at::Tensor& tensor);

}  // namespace tutti::gradient
