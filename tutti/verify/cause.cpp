#include "tutti/verify/cause.h"

#include <array>
#include <utility>

namespace tutti {
namespace {

constexpr std::array kNames{
    std::pair{Cause::scaled, "scaled"},
    std::pair{Cause::not_synchronized, "not_synchronized"},
    std::pair{Cause::partly_synchronized, "partly_synchronized"},
    std::pair{Cause::over_other_axis, "over_other_axis"},
    std::pair{Cause::missing, "missing"},
    std::pair{Cause::counted_twice, "counted_twice"},
    std::pair{Cause::replaced, "replaced"},
    std::pair{Cause::wrong_sign, "wrong_sign"},
    std::pair{Cause::weighted, "weighted"},
    std::pair{Cause::lost_microbatch, "lost_microbatch"},
    std::pair{Cause::stale_weights, "stale_weights"},
    std::pair{Cause::rounded, "rounded"},
    std::pair{Cause::gradient_missing, "gradient_missing"},
    std::pair{Cause::gradient_unexpected, "gradient_unexpected"},
    std::pair{Cause::not_finite, "not_finite"},
    std::pair{Cause::rows_coupled, "rows_coupled"},
    std::pair{Cause::random, "random"},
    std::pair{Cause::started_differently, "started_differently"},
    std::pair{Cause::step_skipped, "step_skipped"},
    std::pair{Cause::parameter_diverged, "parameter_diverged"},
    std::pair{Cause::buffer_diverged, "buffer_diverged"},
    std::pair{Cause::other_loss, "other_loss"},
    std::pair{Cause::other_weights, "other_weights"},
    std::pair{Cause::unknown, "unknown"},
};

}  // namespace

std::string_view to_string(Cause cause) {
  for (const auto& [value, name] : kNames) {
    if (value == cause) {
      return name;
    }
  }
  return "unknown";
}

}  // namespace tutti
