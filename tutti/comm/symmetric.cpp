#include "tutti/comm/symmetric.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>

#include "tutti/comm/backend.h"
#include "tutti/comm/exception.h"

namespace tutti {
namespace {

/// What a storage holds on to: the memory, and where it came from.
struct Piece {
  std::shared_ptr<engine::Reach> reach;
  std::byte* data;

  static void release(void* context) {
    const std::unique_ptr<Piece> piece(static_cast<Piece*>(context));
    piece->reach->free(piece->data);
  }
};

Backend& ours(c10d::Backend& backend, const char* name) {
  auto* found = dynamic_cast<Backend*>(&backend);
  if (found == nullptr) {
    throw Exception({Code::unsupported, std::string(name) + ": this group's backend is not tutti but " +
                                            backend.getBackendName() + ", which has no symmetric memory"});
  }
  return *found;
}

}  // namespace

c10::DataPtr SymmetricAllocator::allocate(std::size_t bytes) {
  auto* data = value_or_throw(reach_->allocate(bytes));
  return {data, new Piece{reach_, data}, &Piece::release, c10::Device(c10::DeviceType::CPU)};
}

void SymmetricAllocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  default_copy_data(to, from, bytes);
}

at::Tensor SymmetricAllocator::empty(at::IntArrayRef sizes, const at::TensorOptions& options) {
  if (!options.device().is_cpu() || options.layout() != at::kStrided) {
    throw Exception(
        {Code::invalid_argument, "symmetric memory is for dense CPU tensors; another device or layout was asked for"});
  }
  const auto type = c10::typeMetaToScalarType(options.dtype());
  const auto count = c10::multiply_integers(sizes);
  TORCH_CHECK(std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size >= 0; }),
              "symmetric_empty: negative size");
  const auto bytes = static_cast<std::size_t>(count) * c10::elementSize(type);
  // Not resizable: the storage would keep a bare pointer to this allocator.
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, allocate(bytes), nullptr, false);
  auto tensor = at::empty({0}, options.requires_grad(false).pinned_memory(std::nullopt));
  tensor.set_(std::move(storage), 0, sizes, c10::contiguous_strides(sizes));
  return tensor.requires_grad_(options.requires_grad());
}

at::Tensor symmetric_empty(at::IntArrayRef sizes, const at::TensorOptions& options, c10d::Backend& backend) {
  return ours(backend, "symmetric_empty").allocator().empty(sizes, options);
}

at::Tensor symmetric_empty(at::IntArrayRef sizes, const at::TensorOptions& options,
                           const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  return symmetric_empty(sizes, options, *group->getBackend(c10::DeviceType::CPU));
}

at::Tensor symmetric_if_any(at::IntArrayRef sizes, const at::TensorOptions& options,
                            const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  try {
    return symmetric_empty(sizes, options, group);
  } catch (const Exception& exception) {
    if (exception.code() != Code::resource_exhausted) {
      throw;
    }
    return at::empty(sizes, options);
  }
}

bool is_symmetric(const at::Tensor& tensor, c10d::Backend& backend) {
  if (!tensor.defined() || !tensor.device().is_cpu() || !tensor.has_storage()) {
    return false;
  }
  return ours(backend, "is_symmetric").reaches(tensor);
}

bool is_symmetric(const at::Tensor& tensor, const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  return is_symmetric(tensor, *group->getBackend(c10::DeviceType::CPU));
}

}  // namespace tutti
