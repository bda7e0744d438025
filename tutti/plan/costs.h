#pragma once

#include "tutti/plan/network.h"

namespace tutti::plan {

/// What a rank's processor does at a stretch.
struct Work {
  double seconds = 0;  ///< while nobody else needs the host's cores or memory
  double copied = 0;   ///< bytes through its memory
};

inline Work message_work(const MessageCost& cost, double bytes) {
  return {cost.seconds + cost.seconds_per_byte * bytes, cost.seconds_per_byte > 0 ? bytes : 0};
}

/// One source is copied, each next one is added.
inline Work combine_work(const Processors& processors, std::uint32_t sources, double bytes) {
  if (bytes == 0) {
    return {};
  }
  const auto moved = sources > 1 ? (sources - 1) * bytes : bytes;
  const auto speed = sources > 1 ? processors.reduce : processors.copy;
  return {processors.combine_seconds + (speed > 0 ? moved / speed : 0), moved};
}

}  // namespace tutti::plan
