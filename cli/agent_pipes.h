#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/child.h"
#include "cli/event_loop.h"
#include "cli/line_splitter.h"
#include "tutti/base/error.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::cli {

/// A launch agent's process and the pipes to its three standard streams. Used by the loop's thread; never blocks: an
/// agent that hangs must not hang us.
class AgentPipes {
 public:
  /// Called by the loop, and by the reading members below.
  struct Handlers {
    std::function<void(std::string_view bytes)> output;
    std::function<void()> output_end;  ///< also when `close_output` was called
    LineSplitter::Sink error_line;
  };

  /// The loop must outlive it.
  AgentPipes(EventLoop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  ~AgentPipes();
  AgentPipes(const AgentPipes&) = delete;
  AgentPipes& operator=(const AgentPipes&) = delete;

  Status start(const std::vector<std::string>& command, const Inheritance& inheritance);

  pid_t pid() const { return pid_; }
  /// Ends the process and those of its group.
  void kill() const;

  /// Writes what the pipe takes, and the rest when it takes more. Bytes are wiped once they are written: they may be
  /// secret. To an agent that is gone it does nothing.
  void send(std::string_view bytes);

  /// While paused no output is read.
  void pause(bool paused);
  /// Reads what the agent has written to its standard error.
  void read_errors();
  /// Nobody writes any more: reads what there still is, and closes. Output stays while paused.
  void finish();
  void close_output();

  bool output_open() const { return output_.valid(); }
  bool errors_open() const { return errors_.valid(); }

 private:
  Status watch_output();
  void write_some();
  void read_output();
  void close_errors();

  EventLoop& loop_;
  Handlers handlers_;
  pid_t pid_ = 0;
  FileDescriptor input_;
  FileDescriptor output_;
  FileDescriptor errors_;
  std::string unsent_;
  bool writing_ = false;
  bool paused_ = false;
  LineSplitter error_lines_;
};

}  // namespace tutti::cli
