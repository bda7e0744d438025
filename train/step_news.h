#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tutti/observe/run_record.h"

namespace tutti::train {

/// What a rank tells all others after a step: all that they exchange beside gradients. As a row of numbers it has the
/// same length on every rank. Pure.
struct StepNews {
  observe::RankTimes times = {};
  bool wants_to_stop = false;
  std::vector<double> losses = {};  ///< of its passes

  /// `passes`: the most that a rank makes.
  std::vector<double> row(std::size_t passes) const;
  static StepNews from_row(std::span<const double> row);
  static std::size_t row_length(std::size_t passes);
};

/// The mean over all passes, added up in their order: the same bits whoever made them. Pass p is the one that rank
/// p % ranks made after p / ranks others.
double mean_loss(std::span<const StepNews> ranks);

/// The same as rows for a timeline, of which every rank sends equally many.
std::vector<double> timeline_row(const observe::RankTimeline& timeline, std::size_t passes, std::size_t buckets);
observe::RankTimeline timeline_from_row(int rank, std::span<const double> row);

}  // namespace tutti::train
