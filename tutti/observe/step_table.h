#pragma once

#include <span>
#include <vector>

#include "tutti/observe/run_record.h"
#include "tutti/observe/thinning.h"

namespace tutti::observe {

/// The rows of `steps`. One thread.
class StepTable {
 public:
  explicit StepTable(std::size_t rows) : rows_(rows), thinning_(rows) {}

  void add(const StepFigures& figures, std::span<const RankTimes> ranks);
  nlohmann::json to_json() const;

 private:
  struct Row {
    StepFigures figures;
    double step_ms = 0;  // of the rank that took longest
    RankTimes means;
  };
  std::vector<Row> rows_;
  Thinning thinning_;
};

/// The rows of `evaluation`. One thread.
class EvaluationTable {
 public:
  explicit EvaluationTable(std::size_t rows) : rows_(rows), thinning_(rows) {}

  void add(std::int64_t step, double loss) { rows_[thinning_.next()] = {step, loss}; }
  nlohmann::json to_json() const;

 private:
  struct Row {
    std::int64_t step = 0;
    double loss = 0;
  };
  std::vector<Row> rows_;
  Thinning thinning_;
};

}  // namespace tutti::observe
