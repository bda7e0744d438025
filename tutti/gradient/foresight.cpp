#include "tutti/gradient/foresight.h"

#include <algorithm>

namespace tutti::gradient {

Foresight::Foresight(std::vector<std::size_t> bytes) {
  for (const auto size : bytes) {
    parameters_.push_back({.bytes = size});
  }
  sizes_ = std::move(bytes);
  std::erase_if(sizes_, [](std::size_t size) { return size < kSmallest; });
  std::sort(sizes_.begin(), sizes_.end());
  sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
}

void Foresight::begin_pass() {
  requests_.clear();
  gradients_ = 0;
  since_ = 0;
}

std::optional<std::size_t> Foresight::asked(std::size_t bytes) {
  if (!std::binary_search(sizes_.begin(), sizes_.end(), bytes)) {
    requests_.emplace_back();  // for `given`
    return std::nullopt;
  }
  MemoryRequest request{.gradients = gradients_, .bytes = bytes};
  for (auto i = since_; i < requests_.size(); ++i) {
    request.number += requests_[i].first.bytes == bytes ? 1 : 0;
  }
  requests_.emplace_back(request, nullptr);
  const auto found = foretold_.find(request);
  return found == foretold_.end() ? std::nullopt : std::optional(found->second);
}

void Foresight::given(const void* data) {
  if (requests_.back().first.bytes == 0) {
    requests_.pop_back();
  } else {
    requests_.back().second = data;
  }
}

void Foresight::arrived(std::size_t parameter, const void* data) {
  ++gradients_;
  since_ = requests_.size();
  auto& one = parameters_[parameter];
  if (one.hopeless || one.bytes < kSmallest) {
    return;
  }
  // The last one: memory is used again.
  const auto found = std::find_if(requests_.rbegin(), requests_.rend(), [&](const auto& request) {
    return data != nullptr && request.second == data && request.first.bytes == one.bytes;
  });
  if (found == requests_.rend()) {
    forget(one);
    return;
  }
  if (one.last != found->first) {
    forget(one);
    one.last = found->first;
  } else if (!one.foretold) {
    one.foretold = foretold_.emplace(found->first, parameter).second;
  }
}

void Foresight::mistaken(std::size_t parameter) {
  forget(parameters_[parameter]);
  parameters_[parameter].hopeless = true;
}

void Foresight::forget(Parameter& parameter) {
  if (parameter.foretold) {
    foretold_.erase(*parameter.last);
  }
  parameter.foretold = false;
  parameter.last.reset();
}

}  // namespace tutti::gradient
