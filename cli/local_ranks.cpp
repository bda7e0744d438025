#include "cli/local_ranks.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "cli/rank_environment.h"
#include "cli/reaper.h"
#include "cli/system_facts.h"

namespace tutti::cli {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr int kReadsPerTurn = 4;
constexpr int kPipeBytes = 256 * 1024;

}  // namespace

LocalRanks::LocalRanks(Options options, EventLoop& loop, RankListener& listener)
    : options_(std::move(options)), loop_(loop), listener_(listener), buffer_(kReadBytes) {}

LocalRanks::~LocalRanks() {
  for (Pipe& pipe : pipes_) {
    unwatch(pipe);
  }
}

Result<FileDescriptor> LocalRanks::add_pipe(Rank rank, Stream stream) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return system_error("cannot make a pipe for a rank's output", errno);
  }
  pipes_.push_back({.rank = rank, .stream = stream, .fd = FileDescriptor(ends[0])});
  FileDescriptor write_end(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);  // this end alone: a rank's own end blocks, as programs expect
  ::fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);
  if (const Status watched = watch(pipes_.size() - 1); !watched) {
    return watched.error();
  }
  return write_end;
}

Status LocalRanks::watch(std::size_t pipe) {
  pipes_[pipe].watched = true;
  return loop_.watch(pipes_[pipe].fd.get(), EPOLLIN, [this, pipe](std::uint32_t) { read_some(pipe, false); });
}

void LocalRanks::unwatch(Pipe& pipe) {
  if (std::exchange(pipe.watched, false)) {
    loop_.forget(pipe.fd.get());
  }
}

Status LocalRanks::start() {
  const auto topology = plan::read_topology();
  if (!topology) {
    return topology.error();
  }
  const Share& share = options_.share;
  const auto placements = plan::place_ranks(topology.value(), share.count, share.bind);
  const auto base = own_environment();
  const auto cores = static_cast<int>(topology.value().cores.size());
  const int usable = usable_cores(topology.value());
  if (share.bind == plan::Bind::core && share.count > cores) {
    listener_.runner_says("more ranks (" + std::to_string(share.count) + ") than cores (" + std::to_string(cores) +
                          "): bound ranks share cores");
  }
  const FileDescriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (int local = 0; local < share.count; ++local) {
    const bool first = to_int(share.first) + local == 0;
    ChildSpec spec{.command = share.command,
                   .environment = rank_environment(base, share, local, usable),
                   .directory = share.directory,
                   .input = first && options_.first_input >= 0 ? options_.first_input : nothing.get(),
                   .secret = options_.secret,
                   .placement = placements[static_cast<std::size_t>(local)],
                   .inheritance = options_.inheritance};
    if (Status started = start_rank(local, spec); !started) {
      return started;
    }
  }
  return {};
}

Status LocalRanks::start_rank(int local_rank, ChildSpec& spec) {
  const Rank rank{to_int(options_.share.first) + local_rank};
  const auto out = add_pipe(rank, Stream::out);
  if (!out) {
    return out.error();
  }
  const auto err = add_pipe(rank, Stream::err);
  if (!err) {
    return err.error();
  }
  spec.output = out.value().get();
  spec.errors = err.value().get();
  const auto pid = spawn(spec);
  if (!pid) {
    return pid.error();
  }
  processes_.push_back({.rank = rank, .pid = pid.value(), .running = true});
  listener_.rank_started(rank, pid.value(), "");
  return {};
}

bool LocalRanks::child_ended(pid_t pid, int status) {
  const auto found = std::find_if(processes_.begin(), processes_.end(),
                                  [pid](const Process& process) { return process.running && process.pid == pid; });
  if (found == processes_.end()) {
    return false;
  }
  found->running = false;
  // Its last words first, so that they are known when its end is judged.
  for (std::size_t i = 0; i < pipes_.size(); ++i) {
    if (pipes_[i].rank == found->rank && !paused_) {
      read_some(i, true);
    }
  }
  listener_.rank_ended(found->rank, status);
  return true;
}

void LocalRanks::signal_ranks(int signal) {
  // Also groups whose first process has ended: a wrapper may be gone and the program still there.
  for (const Process& process : processes_) {
    if (::kill(-process.pid, signal) != 0 && process.running) {
      ::kill(process.pid, signal);  // it moved to another group
    }
  }
}

void LocalRanks::kill_ranks() { signal_ranks(SIGKILL); }

bool LocalRanks::dying() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return process.running && is_exiting(process.pid); });
}

bool LocalRanks::groups_left() const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [](const Process& process) { return ::kill(-process.pid, 0) == 0; });
}

void LocalRanks::pause(bool paused) {
  if (paused_ == paused) {
    return;
  }
  paused_ = paused;
  for (std::size_t i = 0; i < pipes_.size(); ++i) {
    if (!pipes_[i].fd.valid()) {
      continue;
    }
    if (paused) {
      unwatch(pipes_[i]);
    } else if (!watch(i)) {
      close(pipes_[i]);
    }
  }
}

void LocalRanks::no_more_output() {
  writers_gone_ = true;
  for (std::size_t i = 0; i < pipes_.size() && !paused_; ++i) {
    read_some(i, true);
  }
}

bool LocalRanks::drained() const {
  return std::none_of(pipes_.begin(), pipes_.end(), [](const Pipe& pipe) { return pipe.fd.valid(); });
}

void LocalRanks::read_some(std::size_t index, bool to_the_end) {
  for (int turn = 0; to_the_end || turn < kReadsPerTurn; ++turn) {
    // The listener may pause us when its queue is full.
    if (!pipes_[index].fd.valid() || paused_) {
      return;
    }
    const ssize_t got = ::read(pipes_[index].fd.get(), buffer_.data(), buffer_.size());
    if (got > 0) {
      listener_.rank_output(pipes_[index].rank, pipes_[index].stream, {buffer_.data(), static_cast<std::size_t>(got)});
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else if (got < 0 && errno == EAGAIN && !writers_gone_) {
      return;
    } else {
      close(pipes_[index]);
      return;
    }
  }
}

void LocalRanks::close(Pipe& pipe) {
  unwatch(pipe);
  pipe.fd.reset();
  listener_.rank_output_end(pipe.rank, pipe.stream);
}

}  // namespace tutti::cli
