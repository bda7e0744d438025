#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "cli/event_loop.h"
#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::cli {

/// Makes this process the one that its orphaned descendants fall to, so that none gets away.
Status become_subreaper();

/// All living descendants of a process, zombies not counted.
std::vector<pid_t> descendants(pid_t root);

/// Whether a process is on its way out: it runs no code of its own any more, but cannot be reaped yet.
bool is_exiting(pid_t pid);

/// What waitpid() tells about a child that ended.
using Reaped = std::function<void(pid_t pid, int status)>;

/// Reaps every child that has ended, without waiting. False when there is no child at all.
bool reap(const Reaped& reaped);

/// Has the loop call `reaped` for every child that ends. The thread that calls this has SIGCHLD blocked, as those that
/// follow. The loop must forget the descriptor before it is closed.
Result<FileDescriptor> watch_children(EventLoop& loop, Reaped reaped);

/// Sends SIGKILL to all descendants and reaps them, those too that they start meanwhile. Needs `become_subreaper()`.
/// False when some were still there at the deadline (a process that the kernel cannot end right now).
bool end_descendants(Deadline deadline, const Reaped& reaped);

}  // namespace tutti::cli
