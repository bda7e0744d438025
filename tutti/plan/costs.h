#pragma once

#include "tutti/plan/network.h"

namespace tutti::plan {

/// What a rank's processor does at a stretch.
struct Work {
  double seconds = 0;  ///< while nobody else needs the host's cores or memory
  double copied = 0;   ///< bytes through its memory
};

/// What the ramp makes of so many bytes from a message's beginning.
inline double ramp_seconds(const MessageCost& cost, double bytes) {
  return cost.ramp > 0 && bytes > 0 ? cost.ramp * bytes / (bytes + cost.ramp_bytes) : 0;
}

/// One end of a message: of so many of its bytes, after those that went before. What a message costs each comes with
/// the first.
inline Work message_work(const Processors& processors, const MessageCost& cost, double bytes, double before = 0) {
  const auto first = before == 0 ? processors.step_seconds + cost.seconds : 0;
  const auto ramp = ramp_seconds(cost, before + bytes) - ramp_seconds(cost, before);
  return {first + ramp + cost.seconds_per_byte * bytes, cost.seconds_per_byte > 0 ? bytes : 0};
}

/// The same where nobody follows what goes through rings: a turn for each message.
inline Work end_work(const Network& network, const Level& level, const MessageCost& cost, double bytes) {
  auto work = message_work(network.processors, cost, bytes);
  work.seconds += level.ring.seconds;
  return work;
}

/// One source is copied, each next one is added.
inline Work combine_work(const Processors& processors, std::uint32_t sources, double bytes) {
  if (bytes == 0) {
    return {.seconds = processors.step_seconds};
  }
  const auto takes = [](double moved, double speed) { return speed > 0 ? moved / speed : 0; };
  const auto begin = processors.step_seconds + processors.combine_seconds;
  if (sources == 1) {
    return {begin + takes(bytes, processors.copy), bytes};
  }
  const auto added = (sources - 1) * bytes;
  return {begin + takes(bytes, processors.sum) + takes(added, processors.reduce),
          added + (processors.sum > 0 ? bytes : 0)};
}

}  // namespace tutti::plan
