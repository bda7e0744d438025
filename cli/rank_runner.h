#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/rank.h"
#include "tutti/plan/topology.h"

namespace tutti::cli {

enum class Stream : std::uint8_t { out = 1, err = 2 };

/// The part of a job that one host runs: ranks `first` to `first + count - 1` of `world_size`.
struct Share {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> variables;  ///< for every rank, on top of what the host has
  std::string directory = {};                                  ///< where ranks start; empty: here
  Rank first{0};
  int count = 1;
  int world_size = 1;
  plan::Bind bind = plan::Bind::none;

  bool holds(Rank rank) const { return to_int(rank) >= to_int(first) && to_int(rank) < to_int(first) + count; }
};

/// What a runner tells, always from the supervisor's thread.
class RankListener {
 public:
  virtual ~RankListener() = default;
  /// `host` is empty when it is this one.
  virtual void rank_started(Rank rank, pid_t pid, std::string_view host) = 0;
  /// Bytes as they came, cut anywhere; and their end.
  virtual void rank_output(Rank rank, Stream stream, std::string_view bytes) = 0;
  virtual void rank_output_end(Rank rank, Stream stream) = 0;
  /// `status` as waitpid() tells it; nullopt when nobody can tell any more.
  virtual void rank_ended(Rank rank, std::optional<int> status) = 0;
  /// The runner cannot go on, and has said or will say of each of its ranks that it ended. `share_first` is the first
  /// of them, `code` what the tool should exit with.
  virtual void runner_failed(Rank share_first, const std::string& sentence, int code) = 0;
  /// Something for the user to read, that is not from a rank.
  virtual void runner_says(const std::string& line) = 0;
};

/// Whether a signal only holds ranks up, or lets them go on. Every other one means that they are to end.
inline bool only_pauses(int signal) { return signal == SIGSTOP || signal == SIGCONT; }

/// Something that runs ranks: processes of this host, or an agent on another one. Used by one thread, the supervisor's.
class RankRunner {
 public:
  virtual ~RankRunner() = default;

  /// Starts its ranks. After an error some may run: `kill_ranks` ends them.
  virtual Status start() = 0;
  /// A child of this process ended; true when it was one of the runner's.
  virtual bool child_ended(pid_t pid, int status) = 0;
  /// Sends a signal to the process groups of all ranks that run.
  virtual void signal_ranks(int signal) = 0;
  /// Ends its ranks at once.
  virtual void kill_ranks() = 0;
  /// Whether the kernel is taking a rank down, which takes seconds where it has much memory; its end is not known yet.
  /// False where nobody can tell.
  virtual bool dying() const = 0;
  /// Whether a process group of its ranks still has a process, also when the rank itself has ended.
  virtual bool groups_left() const = 0;
  /// While paused it reads no output, so that ranks that print wait.
  virtual void pause(bool paused) = 0;
  /// Whether children of this process are still needed to hear the rest.
  virtual bool needs_children() const = 0;
  /// All processes are gone: what the pipes hold now is all there will be.
  virtual void no_more_output() = 0;
  /// Whether all output was delivered.
  virtual bool drained() const = 0;
};

}  // namespace tutti::cli
