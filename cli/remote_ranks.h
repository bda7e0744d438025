#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/child.h"
#include "cli/event_loop.h"
#include "cli/frames.h"
#include "cli/job_output.h"
#include "cli/line_splitter.h"
#include "cli/rank_runner.h"
#include "tutti/base/file_descriptor.h"
#include "tutti/rendezvous/secret.h"

namespace tutti::cli {

/// Ranks on another host, behind an agent that a command (ssh) starts there. Nothing about the job is on that command's
/// line: it all goes through its standard input.
class RemoteRanks : public RankRunner {
 public:
  struct Options {
    std::string host;
    std::vector<std::string> command;  ///< starts `tutti host-agent` on the host
    Share share;
    rendezvous::Secret secret;
    Inheritance inheritance;
    /// How long the host may take until its agent greets: a log-in that asks for something would wait for ever.
    std::chrono::milliseconds greeting_limit = std::chrono::seconds(30);
  };

  /// Loop and listener must outlive it.
  RemoteRanks(Options options, EventLoop& loop, RankListener& listener);
  ~RemoteRanks() override;

  Status start() override;
  bool child_ended(pid_t pid, int status) override;
  void signal_ranks(int signal) override;
  void kill_ranks() override;
  bool groups_left() const override { return output_.valid(); }
  void pause(bool paused) override;
  bool needs_children() const override { return output_.valid(); }
  void no_more_output() override;
  bool drained() const override { return !output_.valid() && !errors_.valid(); }

 private:
  Status watch_output();
  Status watch_greeting();
  void on_greeting_limit();
  void send(const Frame& frame);
  void write_some();
  void read_output();
  void read_errors();
  /// False: what came is not for us.
  bool take_bytes(std::string_view bytes);
  bool take_greeting(std::string_view& bytes);
  bool take_frame(const Frame& frame);
  void close_output();
  void fail(const std::string& sentence, int code);
  void lose_ranks();
  std::string agent_end() const;

  Options options_;
  EventLoop& loop_;
  RankListener& listener_;
  pid_t pid_ = 0;
  int agent_status_ = 0;
  bool agent_ended_ = false;
  FileDescriptor input_;
  FileDescriptor output_;
  FileDescriptor errors_;
  FileDescriptor greeting_timer_;
  std::string unsent_;
  bool writing_ = false;
  bool paused_ = false;
  bool greeted_ = false;
  bool failed_ = false;
  std::string before_greeting_;
  FrameReader reader_;
  LineSplitter error_lines_;
  Tail last_errors_;
  std::vector<bool> ended_;  ///< by local rank
};

}  // namespace tutti::cli
