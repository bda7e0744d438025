#include "cli/front.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "cli/reaper.h"
#include "cli/verdict.h"

namespace tutti::cli {
namespace {

constexpr std::chrono::seconds kLastWait{2};

int complain(std::string_view name, std::string_view sentence) {
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(name.size()), name.data(), static_cast<int>(sentence.size()),
               sentence.data());
  return 1;
}

/// Which signals this process was started to ignore.
sigset_t ignored_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
      sigaddset(&set, signal);
    }
  }
  return set;
}

/// Orders that the user had ignored (nohup) are none; left out, they stay ignored.
sigset_t watched_signals(const sigset_t& ignored) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP}) {
    if (sigismember(&ignored, signal) == 0) {
      sigaddset(&set, signal);
    }
  }
  return set;
}

/// The body's exit code; what it throws must not get past the fork.
int run_body(std::string_view name, const std::function<int(Guarded)>& body, Guarded guarded) {
  try {
    return body(std::move(guarded));
  } catch (const std::exception& error) {
    return complain(name, error.what());
  }
}

void give_order(int orders, int signal) {
  const auto byte = static_cast<unsigned char>(signal);
  [[maybe_unused]] const auto written = ::write(orders, &byte, 1);
}

/// Stops this process as Ctrl-Z would, until somebody continues it. Where nobody could (the process that started it is
/// gone, or in another session) the kernel does not stop it, and this returns at once.
void stop_until_continued() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // takes effect here
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
}

/// Passes orders on until the guarded process has ended; its wait status.
int stay_in_front(pid_t guarded, const sigset_t& watched, int orders) {
  std::optional<int> ended;
  while (!ended) {
    const int signal = ::sigwaitinfo(&watched, nullptr);
    if (signal == SIGCHLD) {
      reap([&](pid_t pid, int status) {
        if (pid == guarded) {
          ended = status;
        }
      });
    } else if (signal == SIGTSTP) {
      // The terminal stops this process alone: the others are in groups of their own.
      give_order(orders, SIGSTOP);
      stop_until_continued();
      give_order(orders, SIGCONT);
    } else if (signal > 0) {
      give_order(orders, signal);
    }
  }
  return *ended;
}

}  // namespace

int run_guarded(std::string_view name, const std::function<int(Guarded)>& body) {
  const sigset_t ignored = ignored_signals();
  ::signal(SIGCHLD, SIG_DFL);  // a parent that ignores it would have our children's statuses thrown away
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow any more is an error of the write, not our death
  const sigset_t watched = watched_signals(ignored);
  sigset_t original;
  ::sigprocmask(SIG_BLOCK, &watched, &original);
  int pipe_ends[2];
  if (const Status reaper = become_subreaper(); !reaper) {
    return complain(name, reaper.error().message);
  }
  if (::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return complain(name, system_error("cannot make a pipe", errno).message);
  }
  FileDescriptor read_end(pipe_ends[0]);
  FileDescriptor write_end(pipe_ends[1]);

  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) {
    return complain(name, system_error("cannot start the supervisor", errno).message);
  }
  if (child == 0) {
    write_end.reset();
    // A group of its own, so that Ctrl-C reaches the front alone; it may write to the terminal all the same.
    ::setpgid(0, 0);
    ::signal(SIGTTOU, SIG_IGN);
    int code = 1;
    if (const Status reaper = become_subreaper(); !reaper) {
      complain(name, reaper.error().message);
    } else {
      code =
          run_body(name, body, {.orders = std::move(read_end), .original_mask = original, .original_ignored = ignored});
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  read_end.reset();
  const int status = stay_in_front(child, watched, write_end.get());
  end_descendants(Deadline::after(kLastWait), [](pid_t, int) {});
  if (WIFSIGNALED(status)) {
    complain(name, "the supervisor was killed by " + signal_text(WTERMSIG(status)) + "; all ranks were ended");
    return 128 + WTERMSIG(status);
  }
  return WEXITSTATUS(status);
}

}  // namespace tutti::cli
