#pragma once

#include <chrono>
#include <vector>

#include "cli/child.h"
#include "cli/event_loop.h"
#include "cli/rank_runner.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::cli {

/// Ranks as children of this process.
class LocalRanks : public RankRunner {
 public:
  struct Options {
    Share share;
    int secret = -1;       ///< descriptor that holds the job's secret; borrowed
    int first_input = -1;  ///< what rank 0 reads as its standard input; -1: nothing
    Inheritance inheritance;
  };

  /// Loop and listener must outlive it.
  LocalRanks(Options options, EventLoop& loop, RankListener& listener);
  ~LocalRanks() override;

  Status start() override;
  bool child_ended(pid_t pid, int status) override;
  void signal_ranks(int signal) override;
  void kill_ranks() override;
  bool dying() const override;
  bool groups_left() const override;
  void pause(bool paused) override;
  bool needs_children() const override { return false; }
  void no_more_output() override;
  bool drained() const override;

 private:
  struct Pipe {
    Rank rank;
    Stream stream;
    FileDescriptor fd;
    bool watched = false;
  };
  struct Process {
    Rank rank;
    pid_t pid = 0;
    bool running = false;
  };

  Result<FileDescriptor> add_pipe(Rank rank, Stream stream);
  Status start_rank(int local_rank, ChildSpec& spec);
  Status watch(std::size_t pipe);
  void unwatch(Pipe& pipe);
  /// Reads what is there, up to a share that leaves room for other ranks.
  void read_some(std::size_t pipe, bool to_the_end);
  void close(Pipe& pipe);

  Options options_;
  EventLoop& loop_;
  RankListener& listener_;
  std::vector<Pipe> pipes_;
  std::vector<Process> processes_;
  std::vector<char> buffer_;
  bool paused_ = false;
  bool writers_gone_ = false;
};

}  // namespace tutti::cli
