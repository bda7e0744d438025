#include "cli/supervisor.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "cli/child.h"
#include "cli/reaper.h"

namespace tutti::cli {
namespace {

/// How long after the first failure others may still turn out to be its cause.
constexpr std::chrono::milliseconds kSettle{250};
/// How long a killed process may take to be gone.
constexpr std::chrono::seconds kKillWait{1};
constexpr int kTimedOut = 124;  // as timeout(1) has it

Deadline::Clock::duration ticks(Supervisor::Seconds seconds) {
  return std::chrono::duration_cast<Deadline::Clock::duration>(seconds);
}

const Deadline& earlier(const Deadline& a, const Deadline& b) { return b.at() < a.at() ? b : a; }

}  // namespace

Supervisor::Supervisor(Options options, Guarded guarded, EventLoop& loop, Writer& writer, rendezvous::Server& server)
    : options_(std::move(options)),
      guarded_(std::move(guarded)),
      loop_(loop),
      writer_(writer),
      server_(server),
      output_(options_.world_size, options_.output, writer),
      ranks_(static_cast<std::size_t>(options_.world_size)),
      ranks_left_(options_.world_size) {}

Supervisor::~Supervisor() {
  loop_.forget(guarded_.orders.get());
  loop_.forget(children_.get());
  loop_.forget(writer_.wakeup());
}

int Supervisor::run() {
  if (const Status logs = output_.open_logs(); !logs) {
    output_.say("tutti run: " + logs.error().message);
    writer_.flush(Deadline::after(kKillWait));
    return 1;
  }
  Status ready = watch_everything();
  if (ready) {
    ready = start_runners();
  }
  if (!ready) {
    failure_ = ready.error().message;
    code_ = spawn_exit_code(ready.error());
    phase_ = Phase::killing;
  }
  while (ready && !over()) {
    loop_.run_once(earlier(earlier(deadline_, second_signal_), job_limit_));
    on_deadline();
  }
  finish();
  return code_;
}

Status Supervisor::watch_everything() {
  sigset_t child_signal;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  children_ = FileDescriptor(::signalfd(-1, &child_signal, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!children_.valid()) {
    return system_error("cannot watch children", errno);
  }
  if (Status orders = loop_.watch(guarded_.orders.get(), EPOLLIN, [this](auto) { on_orders(); }); !orders) {
    return orders;
  }
  if (Status ended = loop_.watch(children_.get(), EPOLLIN, [this](auto) { on_children(); }); !ended) {
    return ended;
  }
  return loop_.watch(writer_.wakeup(), EPOLLIN, [this](auto) { on_writer(); });
}

Status Supervisor::start_runners() {
  began_ = Deadline::Clock::now();
  if (options_.timeout) {
    job_limit_ = Deadline::after(ticks(*options_.timeout));
  }
  for (const auto& runner : runners_) {
    if (Status started = runner->start(); !started) {
      return started;
    }
  }
  return {};
}

void Supervisor::on_orders() {
  unsigned char signal = 0;
  const ssize_t got = ::read(guarded_.orders.get(), &signal, 1);
  if (got == 0) {
    leave_at_once(128 + SIGKILL);  // the front is gone, and with it whoever could want anything
  } else if (got == 1) {
    obey(signal);
  }
}

void Supervisor::obey(int signal) {
  const int code = 128 + signal;
  if (over()) {
    leave_at_once(code_ == 0 ? code : code_);  // only output is left, and nobody takes it
  }
  if (phase_ == Phase::stopping || phase_ == Phase::killing) {
    impatient_ = true;
    kill_now();
  } else {
    output_.say(signal == SIGINT ? std::string("tutti run: stopping; press Ctrl-C again to end at once")
                                 : "tutti run: stopping on " + signal_text(signal));
    stop(signal == SIGINT ? SIGINT : SIGTERM, code);
  }
}

void Supervisor::reap_children() {
  reap([this](pid_t pid, int status) {
    for (const auto& runner : runners_) {
      if (runner->child_ended(pid, status)) {
        return;
      }
    }
  });
}

void Supervisor::on_children() {
  signalfd_siginfo info;
  while (::read(children_.get(), &info, sizeof info) > 0) {
  }
  reap_children();
}

void Supervisor::on_writer() {
  for (const Writer::Broken& broken : writer_.acknowledge()) {
    const std::string path = output_.log_path(broken.fd);
    if (!path.empty()) {
      output_lost_ = true;
      output_.say(fmt::format("tutti run: cannot write '{}' any more: {}", path, std::strerror(broken.error)));
    } else if (broken.fd == STDOUT_FILENO && phase_ == Phase::running && broken.error == EPIPE) {
      code_ = 128 + SIGPIPE;
      output_.say(fmt::format("tutti run: nobody reads the standard output any more{}", over() ? "" : "; stopping"));
      if (!over()) {
        stop(SIGTERM, code_);
      }
    } else if (broken.error != EPIPE) {
      output_lost_ = true;
      output_.say(fmt::format("tutti run: cannot write to standard output any more: {}", std::strerror(broken.error)));
    }
  }
  if (!writer_.full()) {
    for (const auto& runner : runners_) {
      runner->pause(false);
    }
  }
}

void Supervisor::on_deadline() {
  if (job_limit_.expired()) {
    job_limit_ = Deadline::never();
    if (phase_ == Phase::running || phase_ == Phase::settling) {
      output_.say(fmt::format("tutti run: the job took longer than the {} s of --timeout; stopping",
                              options_.timeout->count()));
      stop(SIGTERM, kTimedOut);
    }
  }
  if (second_signal_.expired()) {
    second_signal_ = Deadline::never();
    for (const auto& runner : runners_) {
      runner->signal_ranks(SIGTERM);
    }
  }
  if (deadline_.expired()) {
    deadline_ = Deadline::never();
    if (phase_ == Phase::settling) {
      judge();
    } else if (phase_ == Phase::stopping) {
      kill_now();
    } else if (phase_ == Phase::killing) {
      ranks_left_ = 0;  // what is left now, `finish` ends or names
    }
  }
}

/// Whether nothing of the job runs any more. In a stop, programs whose wrapper is gone already have their grace too.
bool Supervisor::over() const {
  if (ranks_left_ > 0 || phase_ == Phase::settling) {
    return false;
  }
  return phase_ != Phase::stopping ||
         std::none_of(runners_.begin(), runners_.end(), [](const auto& runner) { return runner->groups_left(); });
}

void Supervisor::judge() {
  const auto blamed = first_failure(ends_);
  require(blamed.has_value(), "judging needs a failure");
  blamed_ = ends_[*blamed];
  server_.declare_lost(blamed_->rank, describe(*blamed_));
  stop(SIGTERM, exit_code(*blamed_));
}

void Supervisor::stop(int signal, int code) {
  code_ = code;
  phase_ = Phase::stopping;
  if (options_.store_log) {
    options_.store_log->set_level(spdlog::level::off);
  }
  deadline_ = Deadline::after(ticks(options_.grace));
  if (signal == SIGINT) {
    second_signal_ = Deadline::after(ticks(options_.grace / 2));
  }
  for (const auto& runner : runners_) {
    runner->signal_ranks(signal);
    runner->signal_ranks(SIGCONT);  // a stopped one would not hear it
  }
}

void Supervisor::kill_now() {
  phase_ = Phase::killing;
  second_signal_ = Deadline::never();
  deadline_ = Deadline::after(kKillWait);
  for (const auto& runner : runners_) {
    runner->kill_ranks();
  }
}

void Supervisor::rank_started(Rank rank, pid_t pid, std::string_view host) {
  ranks_[to_index(rank)] = {.rank = rank, .pid = pid, .host = std::string(host)};
}

void Supervisor::rank_output(Rank rank, Stream stream, std::string_view bytes) {
  output_.bytes(rank, stream, bytes);
  if (writer_.full()) {
    for (const auto& runner : runners_) {
      runner->pause(true);
    }
  }
}

void Supervisor::rank_output_end(Rank rank, Stream stream) { output_.end(rank, stream); }

void Supervisor::rank_ended(Rank rank, std::optional<int> status) {
  --ranks_left_;
  if (!status || (phase_ != Phase::running && phase_ != Phase::settling)) {
    return;
  }
  RankEnd end = ranks_[to_index(rank)];
  end.status = *status;
  end.after = Deadline::Clock::now() - began_;
  ends_.push_back(end);
  if (end.good() && ranks_left_ > 0 && !server_.has_joined(rank)) {
    // No failure, but who waits for it to join waits in vain.
    server_.declare_lost(rank, describe(end) + ", and never joined the job");
  }
  if (!end.good() && phase_ == Phase::running) {
    phase_ = Phase::settling;
    deadline_ = Deadline::after(kSettle);
  }
  if (phase_ == Phase::settling && (hard_death(end) || ranks_left_ == 0)) {
    judge();
  }
}

void Supervisor::runner_failed(Rank share_first, const std::string& sentence, int code) {
  if (phase_ != Phase::running && phase_ != Phase::settling) {
    return;
  }
  failure_ = sentence;
  server_.declare_lost(share_first, sentence);
  stop(SIGTERM, code);
}

void Supervisor::runner_says(const std::string& line) { output_.say("tutti run: " + line); }

void Supervisor::finish() {
  wait_for_runners();
  const bool clean = end_descendants(Deadline::after(kKillWait), [this](pid_t pid, int status) {
    for (const auto& runner : runners_) {
      runner->child_ended(pid, status);
    }
  });
  if (!clean) {
    output_.say("tutti run: some processes have not ended yet; the kernel will end them when it can");
  }
  for (const auto& runner : runners_) {
    runner->no_more_output();
  }
  const bool shown = drain();
  on_writer();  // what the last writes met
  print_verdict();
  if (code_ == 0 && output_lost_) {
    code_ = 1;
  }
  if (!shown || !drain()) {
    writer_.flush_errors(Deadline::after(kKillWait));
    leave_at_once(code_);
  }
}

void Supervisor::wait_for_runners() {
  if (phase_ == Phase::killing) {
    for (const auto& runner : runners_) {
      runner->kill_ranks();
    }
  }
  const auto waiting = [this] {
    return std::any_of(runners_.begin(), runners_.end(), [](const auto& runner) { return runner->needs_children(); });
  };
  const Deadline patience = Deadline::after(kKillWait);
  const Deadline for_output = output_patience();
  while (waiting() && (!patience.expired() || (writer_.full() && !impatient_ && !for_output.expired()))) {
    loop_.run_once(Deadline::after(std::chrono::milliseconds(20)));
  }
}

/// A job that ended by itself waits for its reader; one that was ended must end, also when nobody reads.
Deadline Supervisor::output_patience() const {
  if (impatient_) {
    return Deadline::after(kKillWait);
  }
  return phase_ == Phase::running ? Deadline::never()
                                  : Deadline::after(std::max(ticks(options_.grace), ticks(kKillWait)));
}

/// Until all output is written; false when its reader took nothing for too long. A signal in between leaves at once.
bool Supervisor::drain() {
  Deadline patience = output_patience();
  std::uint64_t pieces = writer_.pieces();
  const auto given_up = [&] {
    if (const auto now = writer_.pieces(); now != pieces && !impatient_) {  // slow, but it reads
      pieces = now;
      patience = output_patience();
    }
    return patience.expired();
  };
  constexpr std::chrono::milliseconds kTurn{20};
  const auto drained = [this] {
    return std::all_of(runners_.begin(), runners_.end(), [](const auto& runner) { return runner->drained(); });
  };
  while (!drained()) {
    if (given_up()) {
      return false;
    }
    loop_.run_once(Deadline::after(kTurn));
    for (const auto& runner : runners_) {
      runner->no_more_output();
    }
  }
  while (!writer_.flush(Deadline::after(kTurn))) {
    if (given_up()) {
      return false;
    }
    loop_.run_once(Deadline::now());
  }
  return true;
}

void Supervisor::print_verdict() {
  if (!failure_.empty()) {
    output_.say("tutti run: " + failure_);
  }
  if (!blamed_) {
    return;
  }
  const std::string leavers = early_leavers(ends_, *blamed_);
  output_.say("tutti run: " + describe(*blamed_) + (leavers.empty() ? "" : "; " + leavers));
  for (const std::string& line : output_.last_lines(blamed_->rank)) {
    output_.say("  | " + line);
  }
}

void Supervisor::leave_at_once(int code) {
  for (const auto& runner : runners_) {
    runner->kill_ranks();
  }
  end_descendants(Deadline::after(kKillWait), [](pid_t, int) {});
  ::_exit(code);
}

}  // namespace tutti::cli
