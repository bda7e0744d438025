#include "tutti/comm/prepare.h"

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <fmt/format.h>

#include "tutti/comm/dtype.h"
#include "tutti/comm/exception.h"

namespace tutti {
engine::ConstBlock bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

engine::Block writable_bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

void refuse(std::string message) { throw Exception({Code::invalid_argument, std::move(message)}); }

void check_tensor(const at::Tensor& tensor, std::string_view name) {
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
}

void PreparedCall::add_in_place(const at::Tensor& tensor, bool in, bool out) {
  check_tensor(tensor, name);
  const auto dtype = read_as ? *read_as : value_or_throw(to_dtype(tensor.scalar_type()));
  if ((!call.in.empty() || !call.out.empty()) && dtype != call.dtype) {
    refuse(fmt::format("{}: tensors of {} and {} in one call", name, kernels::to_string(call.dtype),
                       kernels::to_string(dtype)));
  }
  call.dtype = dtype;
  const auto add_blocks = [&](const at::Tensor& plain) {
    const auto bytes = out ? engine::ConstBlock(writable_bytes_of(plain)) : bytes_of(plain);
    if (in) {
      call.in.push_back(bytes);
    }
    if (out) {
      call.out.push_back({const_cast<std::byte*>(bytes.data()), bytes.size()});
    }
  };
  if (tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg()) {
    add_blocks(tensor);
    if (!borrows) {
      kept.push_back(tensor);
    }
    return;
  }
  if (out && at::has_internal_overlap(tensor) == at::MemOverlap::Yes) {
    refuse(fmt::format("{}: elements of an output share memory (an expanded tensor?); use .clone()", name));
  }
  const at::NoGradGuard no_grad;
  auto plain = in ? tensor.detach().resolve_conj().resolve_neg().contiguous()
                  : at::empty(tensor.sizes(), tensor.options().memory_format(at::MemoryFormat::Contiguous));
  add_blocks(plain);
  if (out) {
    copy_back.emplace_back(tensor.detach(), plain);
  }
  kept.push_back(std::move(plain));
}

bool PreparedCall::overlaps(int rank) const {
  const auto own = static_cast<std::size_t>(rank);
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    for (std::size_t o = 0; o < call.out.size(); ++o) {
      const auto& in = call.in[i];
      const auto& out = call.out[o];
      const bool meet =
          !in.empty() && !out.empty() && in.data() < out.data() + out.size() && out.data() < in.data() + in.size();
      const bool own_blocks = call.op == engine::Op::round_sums ||
                              ((call.in.size() == 1 || i == own) && (call.out.size() == 1 || o == own));
      if (meet && !(own_blocks && in.data() == out.data() && in.size() == out.size())) {
        return true;
      }
    }
  }
  return false;
}

void PreparedCall::separate(int rank) {
  if (!overlaps(rank)) {
    return;
  }
  // Accumulators may come behind floats. Blocks of one type lie one behind the other: what is plain stays so.
  const std::size_t aligned = call.op == engine::Op::round_sums ? 16 : 1;
  const auto room = [aligned](std::size_t bytes) { return (bytes + aligned - 1) / aligned * aligned; };
  std::size_t total = 0;
  for (const auto& block : call.in) {
    total += room(block.size());
  }
  auto copy = at::empty({static_cast<int64_t>(total)}, at::kByte);
  auto* to = reinterpret_cast<std::byte*>(copy.mutable_data_ptr());
  engine::BlockList<engine::ConstBlock> inputs;
  for (const auto& block : call.in) {
    std::copy(block.begin(), block.end(), to);
    inputs.push_back({to, block.size()});
    to += room(block.size());
  }
  call.in = std::move(inputs);
  kept.push_back(std::move(copy));
}

Status PreparedCall::copy_results() const {
  if (copy_back.empty()) {
    return {};
  }
  try {
    const at::AutoDispatchBelowADInplaceOrView plain_copies;
    for (const auto& [to, from] : copy_back) {
      to.copy_(from);
    }
    return {};
  } catch (const std::exception& exception) {
    return Error{Code::system, fmt::format("the result could not be copied out: {}", exception.what())};
  }
}

}  // namespace tutti
