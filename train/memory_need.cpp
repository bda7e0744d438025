#include "train/memory_need.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::train {
namespace {

constexpr double kFloat = 4;  // bytes
constexpr double kBfloat16 = 2;

/// What a layer keeps of each token, in widths: what it is given, and of both halves the normalized input; queries,
/// keys and values, and what attention makes of them; the sum between the halves; the wide layer before and after gelu.
constexpr double kKeptByLayer = 1 + 2 + 3 + 1 + 1 + 4 + 4;

std::string size_text(double bytes) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  return bytes >= 1e6 * kGiB ? "a million GiB"
         : bytes >= kGiB     ? fmt::format("{:.1f} GiB", bytes / kGiB)
                             : fmt::format("{:.0f} MiB", bytes / kGiB * 1024);
}

std::string advice(const MemoryNeed& need, int ranks) {
  if (need.activations > need.weights + need.gradients + need.optimizer) {
    return "a smaller --batch-tokens, a larger --accumulation or a smaller --preset needs less";
  }
  return ranks > 1 ? "a smaller --preset or --width, or fewer ranks (-n), needs less"
                   : "a smaller --preset or --width needs less";
}

}  // namespace

double MemoryNeed::bytes(std::int64_t steps) const {
  // The optimizer's state begins with the first step, when activations are gone; gradients grow while those shrink.
  return steps > 1 ? weights + optimizer + std::max(gradients, activations)
                   : weights + std::max(gradients + optimizer, activations);
}

MemoryNeed least_memory(const Config& config, int ranks) {
  const auto size = model_size(config);
  const auto parameters = static_cast<double>(size.parameters());
  const bool half = config.precision == Precision::bfloat16;
  const auto element = half ? kBfloat16 : kFloat;
  const auto tokens = static_cast<double>(*config.batch_tokens) / static_cast<double>(passes(config, ranks));
  const auto kept = (kKeptByLayer * static_cast<double>(size.layers) + 1) * static_cast<double>(size.width) * element +
                    static_cast<double>(kVocabulary) * kFloat;
  return {.weights = parameters * (element + (half ? kFloat : 0)),
          .gradients = parameters * element,
          .optimizer = parameters * 2 * kFloat,
          .activations = tokens * kept};
}

std::optional<std::string> why_it_cannot_fit(const Config& config, int ranks, double available) {
  const auto need = least_memory(config, ranks);
  const auto all = need.bytes(config.steps) * ranks;
  if (all <= available) {
    return std::nullopt;
  }
  return fmt::format(
      "this needs at least {} of memory, and there is {}: each of {} rank{} {} for weights, gradients and optimizer, "
      "and {} for what a pass of {} tokens keeps; {}",
      size_text(all), size_text(available), ranks, ranks == 1 ? "" : "s",
      size_text(need.weights + need.gradients + need.optimizer), size_text(need.activations),
      *config.batch_tokens / passes(config, ranks), advice(need, ranks));
}

}  // namespace tutti::train
