#include "cli/all_ranks.h"

#include <algorithm>

namespace tutti::cli {

Status AllRanks::start() {
  for (const auto& runner : runners_) {
    if (Status started = runner->start(); !started) {
      return started;
    }
  }
  return {};
}

bool AllRanks::child_ended(pid_t pid, int status) {
  return std::any_of(runners_.begin(), runners_.end(),
                     [=](const auto& runner) { return runner->child_ended(pid, status); });
}

void AllRanks::signal_ranks(int signal) {
  for (const auto& runner : runners_) {
    runner->signal_ranks(signal);
  }
}

void AllRanks::kill_ranks() {
  for (const auto& runner : runners_) {
    runner->kill_ranks();
  }
}

bool AllRanks::dying() const {
  return std::any_of(runners_.begin(), runners_.end(), [](const auto& runner) { return runner->dying(); });
}

bool AllRanks::groups_left() const {
  return std::any_of(runners_.begin(), runners_.end(), [](const auto& runner) { return runner->groups_left(); });
}

void AllRanks::pause(bool paused) {
  for (const auto& runner : runners_) {
    runner->pause(paused);
  }
}

bool AllRanks::needs_children() const {
  return std::any_of(runners_.begin(), runners_.end(), [](const auto& runner) { return runner->needs_children(); });
}

void AllRanks::no_more_output() {
  for (const auto& runner : runners_) {
    runner->no_more_output();
  }
}

bool AllRanks::drained() const {
  return std::all_of(runners_.begin(), runners_.end(), [](const auto& runner) { return runner->drained(); });
}

}  // namespace tutti::cli
