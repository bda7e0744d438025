#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "train/config.h"
#include "train/console.h"
#include "train/step_news.h"
#include "train/watch.h"
#include "tutti/base/error.h"
#include "tutti/observe/run_record.h"

namespace tutti::train {

/// How a training ended.
enum class Ending { finished, interrupted };

/// What one rank keeps and shows of the training of all: the record for the report, the live line, what goes wrong, the
/// summary. One thread.
class Logbook {
 public:
  struct Options {
    Config config;  ///< settled
    int ranks = 1;
    std::int64_t first_step = 0;  ///< steps that were made before
    Display display = Display::plain;
  };
  explicit Logbook(const Options& options);

  /// Of a step, numbered from 1.
  struct Step {
    std::int64_t number = 0;
    double gradient_norm = 0;
    double learning_rate = 0;
    double seconds = 0;
    std::optional<double> evaluation = {};
    std::int64_t buckets = 0;
    std::int64_t bytes = 0;  ///< in them
  };
  void step(const Step& step, std::span<const StepNews> ranks);
  void timeline(std::int64_t step, const std::vector<std::vector<double>>& rows);
  void diverged(std::int64_t step, Rank rank, const std::string& why);

  /// A sentence among the lines.
  void say(const std::string& sentence) { console_.say(sentence); }
  /// There will be no more steps.
  void finish() { console_.finish(); }

  /// For the report, as they are.
  observe::RunRecord& record() { return record_; }

  /// Writes run.json and what is made of it into the folder; the paths. Blocks.
  Result<std::vector<std::string>> write(const std::string& folder, Ending ending);

  /// The last words: figures, files, and what the model writes.
  void summary(Ending ending, const std::vector<std::string>& paths, const std::string& sample);

 private:
  using Clock = std::chrono::steady_clock;

  Progress progress_of(const Step& step, double loss, double exposed);
  void tell(const std::vector<observe::RunEvent>& events);
  nlohmann::json whole_run(const std::string& folder);
  nlohmann::ordered_json figures(Ending ending) const;

  const Options options_;
  const Clock::time_point began_ = Clock::now();
  observe::RunRecord record_;
  Console console_;
  Watch watch_;
  Progress last_ = {};
  double evaluation_ = kUnknown;
  double seconds_ = 0;  // in steps
  double exposed_ = 0;  // the same, as the mean over ranks
  double quick_ = 0;    // seconds of a step, smoothed
};

}  // namespace tutti::train
