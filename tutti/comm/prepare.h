#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include "tutti/engine/call.h"

namespace tutti {

/// Tensors of one operation, made ready for an engine: blocks of contiguous bytes, the tensors that own them, and
/// copies to be made afterwards into outputs that were not contiguous. One plain tensor costs no memory.
struct PreparedCall {
  explicit PreparedCall(std::string_view operation) : name(operation) {}

  std::string_view name;                                 ///< of the operation, for errors
  bool borrows = false;                                  ///< the caller keeps the tensors until the call is over
  std::optional<kernels::DType> read_as = std::nullopt;  ///< as in Reduce
  engine::Call call;
  c10::SmallVector<at::Tensor, 2> kept;
  c10::SmallVector<std::pair<at::Tensor, at::Tensor>, 1> copy_back;  ///< to, from

  void add_input(const at::Tensor& tensor) { add_in_place(tensor, true, false); }
  void add_output(const at::Tensor& tensor) { add_in_place(tensor, false, true); }
  /// In and out at once; a tensor that is not contiguous travels as one contiguous copy.
  void add_in_place(const at::Tensor& tensor, bool in, bool out);
  /// Whether an input lies in an output, but for one that is the whole of this rank's own.
  bool overlaps(int rank) const;
  /// Where it does, has the call work on copies of the inputs, taken now.
  void separate(int rank);

  /// Into outputs that were not contiguous, on whatever thread, whatever mode the caller was in.
  Status copy_results() const;
};

/// Throws what every operation refuses: undefined tensors, other devices, sparse or quantized ones.
void check_tensor(const at::Tensor& tensor, std::string_view name);

/// The bytes of a contiguous tensor.
engine::ConstBlock bytes_of(const at::Tensor& tensor);
engine::Block writable_bytes_of(const at::Tensor& tensor);

/// Throws Code::invalid_argument.
[[noreturn]] void refuse(std::string message);

}  // namespace tutti
