#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/agent_pipes.h"
#include "cli/child.h"
#include "cli/event_loop.h"
#include "cli/frames.h"
#include "cli/job_output.h"
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
  bool dying() const override { return false; }
  bool groups_left() const override { return pipes_.output_open(); }
  void pause(bool paused) override { pipes_.pause(paused); }
  bool needs_children() const override { return pipes_.output_open(); }
  void no_more_output() override { pipes_.finish(); }
  bool drained() const override { return !pipes_.output_open() && !pipes_.errors_open(); }

 private:
  Status watch_greeting();
  void on_greeting_limit();
  void on_output(std::string_view bytes);
  void on_output_end();
  void on_error_line(std::string_view line);
  void send(const Frame& frame) { pipes_.send(encode(frame)); }
  /// False: what came is not for us.
  bool take_bytes(std::string_view bytes);
  bool take_greeting(std::string_view& bytes);
  bool take_frame(const Frame& frame);
  void fail(const std::string& sentence, int code);
  void lose_ranks();
  std::string agent_end() const;

  Options options_;
  EventLoop& loop_;
  RankListener& listener_;
  AgentPipes pipes_;
  std::optional<int> agent_status_;  ///< once it has ended
  FileDescriptor greeting_timer_;
  bool greeted_ = false;
  bool failed_ = false;
  std::string before_greeting_;
  FrameReader reader_;
  Tail last_errors_;
  std::vector<bool> ended_;  ///< by local rank
};

}  // namespace tutti::cli
