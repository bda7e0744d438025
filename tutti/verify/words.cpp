#include "tutti/verify/words.h"

#include <cmath>

#include <fmt/format.h>

namespace tutti::verifying {
namespace {

bool is(double factor, double value) { return std::abs(factor - value) <= 1e-3 * std::abs(value); }

std::string scale_hint(double factor, int group, int microbatches) {
  const double size = group;
  if (factor == 0) {
    return "it is zero: zero_grad after backward, or a buffer that nobody filled";
  }
  if (is(factor, size) && microbatches == group) {
    return "contributions were added up and not divided by their number, or microbatches were not";
  }
  if (is(factor, size)) {
    return "contributions were added up and not divided by their number";
  }
  if (microbatches > 1 && is(factor, microbatches)) {
    return "microbatches were added up and not divided by their number";
  }
  if (is(factor, 1 / size)) {
    return "averages were divided by the number of ranks once more";
  }
  if (group > 1 && is(factor, size / (size - 1))) {
    return "the sum was divided by one rank too few";
  }
  if (is(factor, size / (size + 1))) {
    return "the sum was divided by one rank too many";
  }
  if (is(factor, size * size)) {
    return "sums were added up once more";
  }
  return factor < 1 ? "clipped or divided after averaging" : "multiplied after averaging, or passes were added up";
}

std::string other_axis_hint(const Finding& finding) {
  return fmt::format(
      "ranks along {} hold other parts of the model: gradients must be averaged over the group of the "
      "data-parallel axes alone",
      finding.detail);
}

}  // namespace

std::string ranks_text(const std::vector<Rank>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && to_int(ranks[end]) == to_int(ranks[end - 1]) + 1) {
      ++end;
    }
    text += i == 0 ? "" : ", ";
    text += std::to_string(to_int(ranks[i]));
    text += end - i > 2 ? fmt::format("-{}", to_int(ranks[end - 1])) : "";
    i = end - i > 2 ? end : i + 1;
  }
  return text;
}

std::string factor_text(double factor) {
  for (int below = 1; below <= 64; ++below) {
    const double above = std::round(factor * below);
    if (above != 0 && std::abs(above) <= 64 && std::abs(factor * below - above) <= 1e-5 * std::abs(above)) {
      return below == 1 ? fmt::format("{:.0f}", above) : fmt::format("{:.0f}/{}", above, below);
    }
  }
  return fmt::format("{:.4g}", factor);
}

std::string hint_for(const Finding& finding, int group, int microbatches) {
  switch (finding.cause) {
    case Cause::scaled: return scale_hint(finding.factor, group, microbatches);
    case Cause::not_synchronized: return "nobody averages it: it is not in the list, or not in the wrapped module";
    case Cause::partly_synchronized: return "average over all data-parallel axes at once";
    case Cause::over_other_axis: return other_axis_hint(finding);
    case Cause::missing: return "it left the collective early, sent zeros, or its gradient was undefined";
    case Cause::counted_twice: return "a hook that runs twice, or gradients that were not cleared before the step";
    case Cause::replaced: return "the sampler gives both ranks the same rows";
    case Cause::wrong_sign: return "subtracted instead of added";
    case Cause::weighted:
      return finding.detail.empty() ? "scaled or clipped on each rank before averaging"
                                    : "each rank's mean counts the same though they have different numbers of rows: "
                                      "Mean::per_sample and weigh()";
    case Cause::lost_microbatch: return "zero_grad between microbatches, or a pass that was never sent";
    case Cause::stale_weights: return "a copy of the weights that was not refreshed, or last step's result";
    case Cause::rounded: return "compression; if it is meant, say so in VerifyOptions::precision";
    case Cause::gradient_missing: return "set to none after synchronization, or the parameter is not trained there";
    case Cause::gradient_unexpected: return "left from before, or computed by something that the loss does not contain";
    case Cause::not_finite: return "norms tell whether one process gets finite numbers from the same rows";
    case Cause::rows_coupled: return "batch norm, or a loss that compares rows: tutti::synchronize_batch_norm";
    case Cause::random: return "dropout, or unseeded randomness: switch it off, or seed it by row";
    case Cause::started_differently: return "broadcast parameters before the first step: DataParallel does";
    case Cause::step_skipped: return "an optimizer step that not all ranks take, as a gradient scaler that skips";
    case Cause::parameter_diverged: return "optimizers or their state differ, or gradients do in their last bits";
    case Cause::buffer_diverged: return "Buffers::broadcast or Buffers::average, or VerifyOptions::buffers = false";
    case Cause::other_loss: return "gradients are right: a loss that is not the mean, or a constant in it";
    case Cause::other_weights: return "the optimizers of one and of many ranks are set differently";
    case Cause::unknown: return "no combination of ranks' contributions explains it: other rows, other loss, or chance";
  }
  return "";
}

}  // namespace tutti::verifying
