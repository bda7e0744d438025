#pragma once

#include <memory>
#include <vector>

#include "cli/rank_runner.h"

namespace tutti::cli {

/// The runners of a job as one: together they have all its ranks.
class AllRanks : public RankRunner {
 public:
  /// Before `start`.
  void add(std::unique_ptr<RankRunner> runner) { runners_.push_back(std::move(runner)); }

  Status start() override;
  bool child_ended(pid_t pid, int status) override;
  void signal_ranks(int signal) override;
  void kill_ranks() override;
  bool dying() const override;
  bool groups_left() const override;
  void pause(bool paused) override;
  bool needs_children() const override;
  void no_more_output() override;
  bool drained() const override;

 private:
  std::vector<std::unique_ptr<RankRunner>> runners_;
};

}  // namespace tutti::cli
