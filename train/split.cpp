#include "train/split.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"

namespace tutti::train {
namespace {

constexpr std::int64_t kMostStretches = 16;
constexpr std::int64_t kLeastEvaluated = 8192;  // bytes of a stretch, where there are several

}  // namespace

Split split(std::int64_t bytes, double share) {
  require(bytes >= 0 && share >= 0 && share < 1, "a share of a corpus is from 0 to below 1");
  Split parts;
  const auto evaluated = static_cast<std::int64_t>(std::floor(static_cast<double>(bytes) * share));
  if (evaluated == 0) {
    parts.training.push_back({0, bytes});
    return parts;
  }
  const auto stretches = std::clamp<std::int64_t>(evaluated / kLeastEvaluated, 1, kMostStretches);
  // In whole numbers and without a product that could overflow: the first `rest` of them have one more.
  const auto nth = [stretches](std::int64_t total, std::int64_t n) {
    return total / stretches * n + std::min(n, total % stretches);
  };
  for (std::int64_t i = 0; i < stretches; ++i) {
    const auto end = nth(bytes, i + 1);
    const auto middle = end - (nth(evaluated, i + 1) - nth(evaluated, i));
    parts.training.push_back({nth(bytes, i), middle});
    parts.evaluation.push_back({middle, end});
  }
  return parts;
}

}  // namespace tutti::train
