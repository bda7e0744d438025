#include "train/weights.h"

#include <set>
#include <span>
#include <string_view>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "train/safetensors.h"

namespace tutti::train {
namespace {

constexpr std::string_view kPrefix = "transformer.";

std::string path_in(const std::string& folder) { return folder + "/model.safetensors"; }

std::span<std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

Error bad(std::string sentence) { return {Code::invalid_argument, std::move(sentence)}; }

std::string_view without_prefix(std::string_view name) {
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

/// Masks, which older versions saved, and the output layer, which is the input's.
bool is_no_weight(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name == "lm_head.weight";
}

const BlockInfo* find(const Safetensors& file, const std::string& name) {
  const auto* const found = file.find(name);
  return found != nullptr ? found : file.find(without_prefix(name));
}

Result<at::ScalarType> type_of(const BlockInfo& block) {
  switch (block.dtype) {
    case Dtype::f32: return at::kFloat;
    case Dtype::bf16: return at::kBFloat16;
    case Dtype::f16: return at::kHalf;
    default: return bad(fmt::format("{} is {}, and can be F32, BF16 or F16", block.name, to_string(block.dtype)));
  }
}

Status load_one(const Safetensors& file, const BlockInfo& block, at::Tensor tensor) {
  if (tensor.sizes() != at::IntArrayRef(block.shape)) {
    return bad(fmt::format("{} is [{}], and [{}] in this model", block.name, fmt::join(block.shape, ", "),
                           fmt::join(tensor.sizes(), ", ")));
  }
  const auto type = type_of(block);
  if (!type) {
    return type.error();
  }
  const auto stored = at::empty(block.shape, type.value());
  if (auto read = file.read(block, bytes_of(stored)); !read) {
    return read;
  }
  tensor.copy_(stored);
  return {};
}

Status check_leftovers(const Safetensors& file, const std::set<std::string_view>& used) {
  for (const auto& block : file.blocks()) {
    if (!used.contains(without_prefix(block.name)) && !is_no_weight(block.name)) {
      return bad(fmt::format("{} has no place in this model", block.name));
    }
  }
  return {};
}

Status load_all(const Safetensors& file, const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  std::set<std::string_view> used;
  for (const auto& [name, tensor] : tensors) {
    const auto* const block = find(file, name);
    if (block == nullptr) {
      return bad(fmt::format("has no {}", name));
    }
    if (auto loaded = load_one(file, *block, tensor); !loaded) {
      return loaded;
    }
    used.insert(without_prefix(name));
  }
  return check_leftovers(file, used);
}

}  // namespace

Status save_weights(const std::string& folder, const NamedTensors& tensors) {
  std::vector<at::Tensor> kept;  // while their bytes are written
  std::vector<Block> blocks;
  for (const auto& [name, tensor] : tensors) {
    kept.push_back(tensor.detach().to(at::kFloat).contiguous());
    blocks.push_back(
        {.name = name, .dtype = Dtype::f32, .shape = tensor.sizes().vec(), .bytes = bytes_of(kept.back())});
  }
  return write_safetensors(path_in(folder), blocks, {{"format", "pt"}});
}

Status load_weights(const std::string& folder, const NamedTensors& tensors) {
  const auto file = Safetensors::open(path_in(folder));
  if (!file) {
    return file.error();
  }
  if (auto loaded = load_all(file.value(), tensors); !loaded) {
    return Error{loaded.error().code, fmt::format("{}: {}", path_in(folder), loaded.error().message)};
  }
  return {};
}

}  // namespace tutti::train
