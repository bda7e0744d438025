#include "tutti/gradient/model_parts.h"

#include <algorithm>
#include <functional>
#include <unordered_set>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/comm/dtype.h"

namespace tutti {
namespace {

template <class Items>
std::vector<NamedTensor> each_once(const Items& items) {
  std::vector<NamedTensor> all;
  std::unordered_set<const void*> seen;
  for (const auto& item : items) {
    if (item.value().defined() && seen.insert(item.value().unsafeGetTensorImpl()).second) {
      all.push_back({item.key(), item.value()});
    }
  }
  return all;
}

std::string line_of(const NamedTensor& one) {
  return fmt::format("'{}' {}{}", one.name, describe(one.tensor), one.tensor.requires_grad() ? "" : ", not trained");
}

std::vector<std::string> lines_in(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// The first difference between two ranks' lists, as a sentence.
std::string difference(std::string_view what, const std::vector<std::string>& first,
                       const std::vector<std::string>& other, int other_rank) {
  const auto count = std::min(first.size(), other.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (first[i] != other[i]) {
      return fmt::format("{} {} of rank 0 is {} on rank {}", what, first[i], other[i], other_rank);
    }
  }
  const bool more = first.size() > count;
  return fmt::format("{} {} of rank {} is missing on rank {}", what, (more ? first : other)[count],
                     more ? 0 : other_rank, more ? other_rank : 0);
}

}  // namespace

std::vector<NamedTensor> parameters_of(const torch::nn::Module& module) { return each_once(module.named_parameters()); }
std::vector<NamedTensor> buffers_of(const torch::nn::Module& module) { return each_once(module.named_buffers()); }

std::vector<NamedTensor> numbered(const std::vector<at::Tensor>& tensors) {
  std::vector<NamedTensor> all;
  std::unordered_set<const void*> seen;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].defined() && seen.insert(tensors[i].unsafeGetTensorImpl()).second) {
      all.push_back({fmt::format("#{}", i), tensors[i]});
    }
  }
  return all;
}

std::string describe(const at::Tensor& tensor) {
  const auto dtype = to_dtype(tensor.scalar_type());
  return fmt::format("{} [{}]",
                     dtype ? kernels::to_string(dtype.value()) : std::string_view(c10::toString(tensor.scalar_type())),
                     fmt::join(tensor.sizes(), ", "));
}

std::vector<std::string> told_by_all(const std::string& text, const Group& group) {
  auto lengths = at::empty({group.size()}, at::kLong);
  group.blocking().all_gather(lengths, at::full({1}, static_cast<std::int64_t>(text.size()), at::kLong)).wait();
  std::vector<at::Tensor> texts;
  for (int rank = 0; rank < group.size(); ++rank) {
    texts.push_back(at::empty({lengths[rank].item<std::int64_t>()}, at::kByte));
  }
  auto own = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::copy(text.begin(), text.end(), own.data_ptr<std::uint8_t>());
  group.all_gather(texts, own).wait();
  std::vector<std::string> all;
  for (const auto& one : texts) {
    const auto* const begin = reinterpret_cast<const char*>(one.data_ptr<std::uint8_t>());
    all.emplace_back(begin, begin + one.numel());
  }
  return all;
}

void check_same(const std::vector<NamedTensor>& tensors, std::string_view what, const Group& group) {
  std::string text;
  for (const auto& one : tensors) {
    text += line_of(one) + "\n";
  }
  // Equal numbers, nearly always: all that has to travel then.
  const auto number = static_cast<std::int64_t>(std::hash<std::string>{}(text));
  auto bounds = at::empty({2}, at::kLong);
  bounds[0] = number;
  bounds[1] = ~number;
  group.blocking().all_reduce(bounds, ReduceOp::bor).wait();
  if ((bounds[0].item<std::int64_t>() & bounds[1].item<std::int64_t>()) == 0) {
    return;
  }
  const auto texts = told_by_all(text, group);
  for (int rank = 1; rank < group.size(); ++rank) {
    if (texts[static_cast<std::size_t>(rank)] != texts[0]) {
      throw Exception(
          {Code::mismatch,
           fmt::format("ranks have different models: {}",
                       difference(what, lines_in(texts[0]), lines_in(texts[static_cast<std::size_t>(rank)]), rank)),
           group.members()[static_cast<std::size_t>(rank)]});
    }
  }
}

void broadcast(const std::vector<NamedTensor>& tensors, const Group& group, Rank from) {
  const c10::NoGradGuard no_grad;
  std::vector<Work> works;
  for (const auto& one : tensors) {
    works.push_back(group.broadcast(one.tensor.detach(), from));
  }
  for (auto& work : works) {
    work.wait();
  }
}

}  // namespace tutti
