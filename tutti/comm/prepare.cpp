#include <fmt/format.h>

#include "tutti/comm/backend.h"
#include "tutti/comm/dtype.h"
#include "tutti/comm/exception.h"

namespace tutti {
namespace {

[[noreturn]] void refuse(std::string message) { throw Exception({Code::invalid_argument, std::move(message)}); }

/// What every tensor of an operation must be; the first one gives the call its type.
void check_tensor(const at::Tensor& tensor, std::string_view name, engine::Call& call, bool first) {
  if (!tensor.defined()) {
    refuse(fmt::format("{}: an undefined tensor was given", name));
  }
  if (!tensor.device().is_cpu()) {
    refuse(
        fmt::format("{}: a tensor on {} was given; this group moves CPU tensors: use .cpu(), or a group whose backend "
                    "serves that device",
                    name, tensor.device().str()));
  }
  if (tensor.layout() != at::kStrided || tensor.is_quantized()) {
    refuse(fmt::format("{}: a sparse or quantized tensor was given; use .to_dense() or .dequantize()", name));
  }
  const auto dtype = value_or_throw(to_dtype(tensor.scalar_type()));
  if (!first && dtype != call.dtype) {
    refuse(fmt::format("{}: tensors of {} and {} in one call", name, kernels::to_string(call.dtype),
                       kernels::to_string(dtype)));
  }
  call.dtype = dtype;
}

engine::ConstBlock bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

engine::Block writable_bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

}  // namespace

void PreparedCall::add_input(const at::Tensor& tensor) { add_in_place(tensor, true, false); }

void PreparedCall::add_output(const at::Tensor& tensor) { add_in_place(tensor, false, true); }

void PreparedCall::add_in_place(const at::Tensor& tensor, bool in, bool out) {
  check_tensor(tensor, name, call, kept.empty());
  if (out && at::has_internal_overlap(tensor) == at::MemOverlap::Yes) {
    refuse(fmt::format("{}: elements of an output share memory (an expanded tensor?); use .clone()", name));
  }
  const at::NoGradGuard no_grad;
  auto plain = tensor.detach().resolve_conj().resolve_neg();
  if (!plain.is_contiguous() || !plain.is_alias_of(tensor)) {
    plain = in ? plain.contiguous()
               : at::empty(tensor.sizes(), tensor.options().memory_format(at::MemoryFormat::Contiguous));
    if (out) {
      copy_back.emplace_back(tensor.detach(), plain);
    }
  }
  kept.push_back(plain);
  if (in) {
    call.in.push_back(bytes_of(plain));
  }
  if (out) {
    call.out.push_back(writable_bytes_of(plain));
  }
}

}  // namespace tutti
