#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace tutti::observe {

/// Of report/README.md: it changes when the meaning of a field does.
inline constexpr int kFormat = 1;

/// A part of a step. Times here and below are milliseconds on one clock of all ranks; their zero is anybody's.
struct Phase {
  std::string
      name;  ///< "data", "forward", "backward", "wait" (for communication, and nothing else), "optimizer", "evaluation"
  double begin_ms = 0;
  double end_ms = 0;
};

/// A bucket on its way.
struct BucketTimes {
  std::int64_t bytes = 0;
  double ready_ms = 0;  ///< its last gradient was there
  double begin_ms = 0;
  double end_ms = 0;
};

/// What one rank did in one step.
struct RankTimeline {
  int rank = 0;
  std::vector<Phase> phases;
  std::vector<BucketTimes> buckets;
};

/// How long one rank took in one step for what; a handful of numbers, sent in every step.
struct RankTimes {
  double begin_ms = 0;  ///< of the step
  double arrived_ms =
      0;            ///< when its last gradient was there, and it began to wait for the others: who is last here is late
  double step = 0;  ///< from here on durations, in milliseconds
  double forward = 0;
  double backward = 0;
  double exposed = 0;
  double optimizer = 0;
  double communication = 0;
  double hidden = 0;
};

/// What all ranks together say of a step.
struct StepFigures {
  std::int64_t step = 0;  ///< from 1 on, rising
  double loss = 0;
  double gradient_norm = 0;  ///< before clipping
  double learning_rate = 0;
  double tokens_per_s = 0;
};

struct RunEvent {
  std::int64_t step = -1;  ///< below 0: of no step
  int rank = -1;           ///< below 0: of no rank
  std::string kind;
  std::string text;
};

struct RecordLimits {
  std::size_t steps = 2000;    ///< rows, at least 2; when there are more, every second goes, then every second is kept
  std::size_t timelines = 24;  ///< the same
  std::size_t events = 500;
};

/// All that is kept of a run, for its page: what it has in memory, and what it writes, is bounded however long the run
/// is. Lives on one rank; one thread. The format is that of report/README.md.
class RunRecord {
 public:
  RunRecord(int ranks, const RecordLimits& limits = {});
  RunRecord(RunRecord&&) noexcept;
  RunRecord& operator=(RunRecord&&) noexcept;
  ~RunRecord();

  /// One step of all ranks, in their order. Allocates nothing. Totals (stragglers) count every step; rows are thinned
  /// out, but the newest is always there.
  void step(const StepFigures& figures, std::span<const RankTimes> ranks);
  void evaluation(std::int64_t step, double loss);  ///< as many rows as of steps
  void event(RunEvent event);  ///< once when it is told again; a bounded number, the rest is counted
  /// Adds to what one rank sent along an axis.
  void traffic(const std::string& operation, const std::string& axis, std::int64_t calls, std::int64_t bytes);
  /// Of all ranks, in their order. Told again, the most of each rank counts.
  void memory(const std::string& kind, std::vector<std::int64_t> bytes_by_rank);
  void resident(std::vector<std::int64_t> bytes_by_rank);
  void timeline(std::int64_t step, std::vector<RankTimeline> ranks);

  /// name, started, status, duration_s, mesh, configuration, machine, sample: put into the object as they are, but for
  /// bytes that are no UTF-8, which become the sign for that, and numbers that are none, which become null.
  void set(const std::string& field, nlohmann::json value);

  /// Takes a moment: 10 ms with 4 ranks, 60 with 64. Its dump() does not throw.
  nlohmann::json to_json() const;

 private:
  struct Kept;
  std::unique_ptr<Kept> kept_;
};

/// Whether the timeline of a step (from 1 on) is kept, of a training of so many: the first ones, some evenly spread,
/// the last; no more than RecordLimits keeps. The same on all ranks, from these numbers alone. Without a number of
/// steps (below 1) it is the first ones and every hundredth.
bool wants_timeline(std::int64_t step, std::int64_t steps);

}  // namespace tutti::observe
