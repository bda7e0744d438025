#include "cli/supervisor.h"

#include <sys/epoll.h>
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
/// How often to look then whether one who began to go earlier has gone.
constexpr std::chrono::milliseconds kLook{50};
constexpr int kTimedOut = 124;  // as timeout(1) has it

const Deadline& earlier(const Deadline& a, const Deadline& b) { return b.at() < a.at() ? b : a; }

}  // namespace

Supervisor::Supervisor(Options options, Guarded guarded, EventLoop& loop, Writer& writer, rendezvous::Server& server)
    : options_(std::move(options)),
      guarded_(std::move(guarded)),
      loop_(loop),
      writer_(writer),
      server_(server),
      output_(options_.world_size, options_.output, writer),
      inquest_(options_.world_size, server),
      ranks_left_(options_.world_size) {}

Supervisor::~Supervisor() {
  loop_.forget(guarded_.orders.get());
  loop_.forget(children_.get());
  loop_.forget(writer_.wakeup());
}

int Supervisor::run() {
  if (const Status logs = output_.open_logs(); !logs) {
    say(logs.error().message);
    writer_.flush(Deadline::after(kKillWait));
    return 1;
  }
  Status ready = watch_everything();
  if (ready) {
    job_limit_ = options_.timeout ? Deadline::after(*options_.timeout) : Deadline::never();
    ready = runners_.start();
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
  auto children = watch_children(loop_, [this](pid_t pid, int status) { runners_.child_ended(pid, status); });
  if (!children) {
    return children.error();
  }
  children_ = std::move(children).value();
  if (Status orders = loop_.watch(guarded_.orders.get(), EPOLLIN, [this](auto) { on_orders(); }); !orders) {
    return orders;
  }
  return loop_.watch(writer_.wakeup(), EPOLLIN, [this](auto) { on_writer(); });
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
  if (only_pauses(signal)) {
    runners_.signal_ranks(signal);
    return;
  }
  const int code = 128 + signal;
  if (over()) {
    leave_at_once(code_ == 0 ? code : code_);  // only output is left, and nobody takes it
  }
  if (phase_ == Phase::stopping || phase_ == Phase::killing) {
    impatient_ = true;
    kill_now();
  } else {
    say(signal == SIGINT ? std::string("stopping; press Ctrl-C again to end at once")
                         : "stopping on " + signal_text(signal));
    stop(signal == SIGINT ? SIGINT : SIGTERM, code);
  }
}

void Supervisor::on_writer() {
  for (const Writer::Broken& broken : writer_.acknowledge()) {
    const std::string path = output_.log_path(broken.fd);
    if (!path.empty()) {
      output_lost_ = true;
      say(fmt::format("cannot write '{}' any more: {}", path, std::strerror(broken.error)));
    } else if (broken.fd == STDOUT_FILENO && phase_ == Phase::running && broken.error == EPIPE) {
      code_ = 128 + SIGPIPE;
      say(fmt::format("nobody reads the standard output any more{}", over() ? "" : "; stopping"));
      if (!over()) {
        stop(SIGTERM, code_);
      }
    } else if (broken.error != EPIPE) {
      output_lost_ = true;
      say(fmt::format("cannot write to standard output any more: {}", std::strerror(broken.error)));
    }
  }
  if (!writer_.full()) {
    runners_.pause(false);
  }
}

void Supervisor::on_deadline() {
  if (job_limit_.expired()) {
    job_limit_ = Deadline::never();
    if (phase_ == Phase::running || phase_ == Phase::settling) {
      say(fmt::format("the job took longer than the {} s of --timeout; stopping", options_.timeout->count()));
      stop(SIGTERM, kTimedOut);
    }
  }
  if (second_signal_.expired()) {
    second_signal_ = Deadline::never();
    runners_.signal_ranks(SIGTERM);
  }
  if (deadline_.expired()) {
    deadline_ = Deadline::never();
    if (phase_ == Phase::settling) {
      settle();
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
  return phase_ != Phase::stopping || !runners_.groups_left();
}

/// Who fails because of another may be quicker than that one, which may have much to clean up: a large memory, say.
void Supervisor::settle() {
  if (!settle_limit_.expired() && (runners_.dying() || inquest_.culprit_may_come())) {
    deadline_ = Deadline::after(kLook);
  } else {
    judge();
  }
}

void Supervisor::judge() {
  const RankEnd& blamed = inquest_.judge();
  server_.declare_lost(blamed.rank, describe(blamed));
  stop(SIGTERM, exit_code(blamed));
}

void Supervisor::stop(int signal, int code) {
  code_ = code;
  phase_ = Phase::stopping;
  if (options_.store_log) {
    options_.store_log->set_level(spdlog::level::off);
  }
  deadline_ = Deadline::after(options_.grace);
  if (signal == SIGINT) {
    second_signal_ = Deadline::after(options_.grace / 2);
  }
  runners_.signal_ranks(signal);
  runners_.signal_ranks(SIGCONT);  // a stopped one would not hear it
}

void Supervisor::kill_now() {
  phase_ = Phase::killing;
  second_signal_ = Deadline::never();
  deadline_ = Deadline::after(kKillWait);
  runners_.kill_ranks();
}

void Supervisor::rank_started(Rank rank, pid_t pid, std::string_view host) { inquest_.rank_started(rank, pid, host); }

void Supervisor::rank_output(Rank rank, Stream stream, std::string_view bytes) {
  output_.bytes(rank, stream, bytes);
  ranks_complained_ = ranks_complained_ || stream == Stream::err;
  if (writer_.full()) {
    runners_.pause(true);
  }
}

void Supervisor::rank_output_end(Rank rank, Stream stream) { output_.end(rank, stream); }

void Supervisor::rank_ended(Rank rank, std::optional<int> status) {
  --ranks_left_;
  if (phase_ != Phase::running && phase_ != Phase::settling) {
    return;
  }
  if (!status) {
    inquest_.rank_vanished(rank);
    return;
  }
  const RankEnd end = inquest_.rank_ended(rank, *status);
  if (end.good() && ranks_left_ > 0 && !server_.has_joined(rank)) {
    // No failure, but who waits for it to join waits in vain.
    server_.declare_lost(rank, describe(end) + ", and never joined the job");
  }
  if (!end.good() && phase_ == Phase::running) {
    phase_ = Phase::settling;
    deadline_ = Deadline::after(kSettle);
    settle_limit_ = Deadline::after(std::max(options_.grace, Seconds(kSettle)));
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

void Supervisor::runner_says(const std::string& line) { say(line); }

void Supervisor::say(const std::string& sentence) { output_.say(options_.name + ": " + sentence); }

}  // namespace tutti::cli
