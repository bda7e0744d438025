#pragma once

#include <span>
#include <vector>

#include "tutti/plan/algorithms.h"
#include "tutti/plan/network.h"

namespace tutti::plan {

// From what was timed on the machines at hand to a network's figures. Pure: who times, and how, is another's matter.

/// Messages between ranks that are that far from each other, over the links that plans are run on.
struct TimedMessage {
  enum class Kind {
    /// Half of a round trip of one message each way, nobody else talking.
    ping_pong,
    /// One rank sends one message to each of `peers` others, which wait for it: from the first send to the last there.
    /// (As the sender sees it: until the last has answered with one byte, less a ping-pong of one byte.)
    fan_out,
    /// `peers` ranks send one message each to one rank, at the same time: from the first send to the last taken.
    fan_in,
    /// `peers` pairs, each with one end on this and one on that side of one link, all in one direction at once: until
    /// all
    /// are there. Long messages: this is for the link's bandwidth. Levels above the first.
    crossing,
  };
  Kind kind = Kind::ping_pong;
  std::size_t level = 0;  ///< the lowest one that joins them
  double bytes = 0;
  int peers = 1;
  double seconds = 0;  ///< median of many
};

/// What a rank does with its own memory: copies `bytes`, or adds that many to others, as the plan runner does.
struct TimedWork {
  enum class Kind { copy, reduce };
  Kind kind = Kind::copy;
  double bytes = 0;
  int ranks = 1;  ///< of one host do so at the same time
  double seconds = 0;
};

/// What to time at least:
/// - of each level: ping-pongs of 1 byte and of a few sizes up to some MiB; fan_out and fan_in of 1 byte and, of the
/// first
///   level, of 64 KiB, with 2 peers or more; above the first level, crossings of some MiB by one pair and by all.
/// - copy and reduce of 64 KiB, 1 MiB and of the longest blocks that are of interest, by one rank and by all of a host.
struct Timings {
  std::vector<TimedMessage> messages;
  std::vector<TimedWork> works;
};

/// Fills in the figures of a network whose levels have their names and numbers of members, and the host its cores:
/// latency, costs of messages at both ends and per byte (in the first level the processors' copies, above it the
/// stream), links, speeds of processors, memory and slowdown. Least squares of relative errors, no figure negative. An
/// error says which timing is missing, or cannot be.
Result<Network> calibrate(Network network, const Timings& timings);

/// A plan that was run.
struct TimedPlan {
  Request request;
  std::size_t bytes = 0;  ///< of a block
  double seconds = 0;     ///< median
};

/// What is between links timed alone and plans that are run: multiplies latencies, costs of messages, costs of their
/// bytes, links and processors' speeds by one factor each (a tenth to ten), such that the simulator's relative errors
/// for these plans get least. Plans of a few sizes and algorithms, simulated some hundred times: take small ones.
Result<Network> refine(Network network, std::span<const TimedPlan> plans);

}  // namespace tutti::plan
