#include "tutti/observe/step_table.h"

#include <array>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "tutti/observe/values.h"

namespace tutti::observe {
namespace {

struct Figure {
  const char* name;
  double StepFigures::*value;
};

struct Mean {
  const char* name;
  double RankTimes::*value;
};

constexpr std::array kFigures{Figure{"loss", &StepFigures::loss}, Figure{"gradient_norm", &StepFigures::gradient_norm},
                              Figure{"learning_rate", &StepFigures::learning_rate},
                              Figure{"tokens_per_s", &StepFigures::tokens_per_s}};

constexpr std::array kMeans{Mean{"forward_ms", &RankTimes::forward},
                            Mean{"backward_ms", &RankTimes::backward},
                            Mean{"exposed_ms", &RankTimes::exposed},
                            Mean{"optimizer_ms", &RankTimes::optimizer},
                            Mean{"communication_ms", &RankTimes::communication},
                            Mean{"hidden_ms", &RankTimes::hidden}};

}  // namespace

void StepTable::add(const StepFigures& figures, std::span<const RankTimes> ranks) {
  Row& row = rows_[thinning_.next()];
  row = {.figures = figures, .step_ms = std::numeric_limits<double>::quiet_NaN(), .means = {}};
  for (const auto& rank : ranks) {
    row.step_ms = std::fmax(row.step_ms, rank.step);
    for (const auto& mean : kMeans) {
      row.means.*mean.value += rank.*mean.value / static_cast<double>(ranks.size());
    }
  }
}

nlohmann::json StepTable::to_json() const {
  nlohmann::json columns = nlohmann::json::object();
  const auto add = [&](const char* name, auto&& value_of) {
    auto& column = columns[name] = nlohmann::json::array();
    for (const auto slot : thinning_.slots()) {
      column.push_back(value_of(rows_[slot]));
    }
  };
  add("step", [](const Row& row) { return nlohmann::json(row.figures.step); });
  for (const auto& figure : kFigures) {
    add(figure.name, [&](const Row& row) { return number(row.figures.*figure.value); });
  }
  add("step_ms", [](const Row& row) { return thousandths(row.step_ms); });
  for (const auto& mean : kMeans) {
    add(mean.name, [&](const Row& row) { return thousandths(row.means.*mean.value); });
  }
  return columns;
}

nlohmann::json EvaluationTable::to_json() const {
  nlohmann::json columns{{"step", nlohmann::json::array()}, {"loss", nlohmann::json::array()}};
  for (const auto slot : thinning_.slots()) {
    columns["step"].push_back(rows_[slot].step);
    columns["loss"].push_back(number(rows_[slot].loss));
  }
  return columns;
}

}  // namespace tutti::observe
