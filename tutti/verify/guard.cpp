#include "tutti/verify/guard.h"

#include <algorithm>

#include <fmt/format.h>

#include "tutti/verify/exchange.h"
#include "tutti/verify/hash.h"
#include "tutti/verify/words.h"

namespace tutti {

using namespace verifying;

ParameterGuard::ParameterGuard(const torch::nn::Module& module, Group group, const GuardOptions& options)
    : tensors_(parameters_of(module)), group_(std::move(group)), options_(options) {
  if (options.every < 1) {
    throw Exception({Code::invalid_argument, fmt::format("ParameterGuard: every {} steps; at least 1", options.every)});
  }
  if (options.buffers) {
    const auto buffers = buffers_of(module);
    tensors_.insert(tensors_.end(), buffers.begin(), buffers.end());
  }
  check_same(tensors_, "parameter", group_);
  check();
}

void ParameterGuard::step() {
  ++steps_;
  if (steps_ % options_.every == 0) {
    check();
  }
}

void ParameterGuard::check() {
  const auto own = hashes_of(tensors_);
  const auto all = hashes_of_all({hash_of(own)}, group_);
  if (std::all_of(all.begin(), all.end(), [&](const auto& one) { return one == all[0]; })) {
    equal_ = steps_;
    return;
  }
  const auto each = hashes_of_all(own, group_);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    std::vector<std::uint64_t> by_rank;
    for (const auto& hashes : each) {
      by_rank.push_back(hashes[i]);
    }
    const auto odd = odd_ones(by_rank);
    if (!odd.empty()) {
      throw Exception(
          {Code::mismatch,
           fmt::format(
               "'{}' ({}) on {} is not what the other ranks have, after step {}; {}. tutti::verify tells why",
               tensors_[i].name, describe(tensors_[i].tensor), ranks_text(odd), steps_,
               equal_ < 0 ? "they started differently" : fmt::format("after step {} all were the same", equal_)),
           odd[0]});
    }
  }
}

}  // namespace tutti
