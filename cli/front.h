#pragma once

#include <csignal>
#include <functional>
#include <string_view>

#include "tutti/base/file_descriptor.h"

namespace tutti::cli {

/// What the front gives the process that it guards.
struct Guarded {
  /// Readable: one byte per order of the user, a signal's number: SIGSTOP and SIGCONT to hold the job up and to let it
  /// go on, any other to end it. End of file: the front is gone, end everything.
  FileDescriptor orders;
  /// The signal mask that the tool was started with: what ranks are to have.
  sigset_t original_mask;
  /// The signals that it was started to ignore: ranks are to ignore them too.
  sigset_t original_ignored;
};

/// Runs `body` in a process of its own and returns its exit code. The calling process stays in front: it passes SIGINT,
/// SIGTERM and SIGHUP on as orders (not those that were ignored before: nohup), and when the body's process is killed
/// it ends everything that was started below. On SIGTSTP (Ctrl-Z) it has the job held up, and stops itself. The two
/// watch each other, so that neither's death leaves anything behind. Call before any thread exists. `name` begins the
/// front's own messages: "tutti run".
int run_guarded(std::string_view name, const std::function<int(Guarded)>& body);

}  // namespace tutti::cli
