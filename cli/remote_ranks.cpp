#include "cli/remote_ranks.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include <fmt/format.h>

#include "cli/rank_environment.h"
#include "cli/verdict.h"
#include "tutti/version.h"

namespace tutti::cli {
namespace {

constexpr std::size_t kMostNoise = 64 * 1024;
constexpr int kHostLost = 255;  // as ssh exits when it cannot

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return system_error("cannot make a pipe for a launch agent", errno);
  }
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace

RemoteRanks::RemoteRanks(Options options, EventLoop& loop, RankListener& listener)
    : options_(std::move(options)),
      loop_(loop),
      listener_(listener),
      ended_(static_cast<std::size_t>(options_.share.count), false) {}

RemoteRanks::~RemoteRanks() {
  for (const FileDescriptor* fd : {&input_, &output_, &errors_, &greeting_timer_}) {
    loop_.forget(fd->get());
  }
}

Status RemoteRanks::start() {
  auto input = make_pipe();
  auto output = make_pipe();
  auto errors = make_pipe();
  for (const auto* pipe : {&input, &output, &errors}) {
    if (!*pipe) {
      return pipe->error();
    }
  }
  const auto pid = spawn({.command = options_.command,
                          .environment = own_environment(),
                          .input = input.value().read_end.get(),
                          .output = output.value().write_end.get(),
                          .errors = errors.value().write_end.get(),
                          .inheritance = options_.inheritance});
  if (!pid) {
    return pid.error();
  }
  pid_ = pid.value();
  input_ = std::move(input.value().write_end);
  output_ = std::move(output.value().read_end);
  errors_ = std::move(errors.value().read_end);
  for (const FileDescriptor* fd : {&input_, &output_, &errors_}) {
    ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  }
  if (Status watched = watch_output(); !watched) {
    return watched;
  }
  if (Status watched = loop_.watch(errors_.get(), EPOLLIN, [this](auto) { read_errors(); }); !watched) {
    return watched;
  }
  if (Status watched = watch_greeting(); !watched) {
    return watched;
  }
  send({FrameType::share, encode_share(options_.share)});
  const auto& bytes = options_.secret.bytes();
  send({FrameType::secret, std::string(bytes.begin(), bytes.end())});
  return {};
}

Status RemoteRanks::watch_output() {
  return loop_.watch(output_.get(), EPOLLIN, [this](auto) { read_output(); });
}

Status RemoteRanks::watch_greeting() {
  const auto limit = std::max(options_.greeting_limit, std::chrono::milliseconds(1));  // 0 would mean never
  const auto seconds = std::chrono::floor<std::chrono::seconds>(limit);
  itimerspec when{};
  when.it_value = {.tv_sec = seconds.count(), .tv_nsec = std::chrono::nanoseconds(limit - seconds).count()};
  greeting_timer_ = FileDescriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!greeting_timer_.valid() || ::timerfd_settime(greeting_timer_.get(), 0, &when, nullptr) != 0) {
    return system_error("cannot make a timer for a launch agent", errno);
  }
  return loop_.watch(greeting_timer_.get(), EPOLLIN, [this](auto) { on_greeting_limit(); });
}

void RemoteRanks::on_greeting_limit() {
  loop_.forget(greeting_timer_.get());
  greeting_timer_.reset();
  if (greeted_ || agent_ended_) {
    return;
  }
  read_errors();  // what it asked for, perhaps
  fail(fmt::format("'{}' did not start an agent there within {} s", options_.command[0],
                   std::chrono::duration<double>(options_.greeting_limit).count()),
       kHostLost);
  ::kill(-pid_, SIGKILL);  // its end loses the ranks
}

void RemoteRanks::send(const Frame& frame) {
  if (input_.valid()) {
    unsent_ += encode(frame);
    write_some();
  }
}

/// Writes what the pipe takes; the rest when it takes more. An agent that hangs must not hang us.
void RemoteRanks::write_some() {
  while (!unsent_.empty()) {
    const ssize_t written = ::write(input_.get(), unsent_.data(), unsent_.size());
    if (written > 0) {
      std::fill_n(unsent_.begin(), written, '\0');  // the secret may have been in it
      unsent_.erase(0, static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      if (!writing_) {
        writing_ = loop_.watch(input_.get(), EPOLLOUT, [this](auto) { write_some(); }).ok();
      }
      return;
    } else if (errno != EINTR) {
      unsent_.clear();  // it is gone; its output's end tells
    }
  }
  if (std::exchange(writing_, false)) {
    loop_.forget(input_.get());
  }
}

void RemoteRanks::read_output() {
  std::array<char, 64 * 1024> buffer;
  for (int turn = 0; turn < 4 && output_.valid() && !paused_; ++turn) {
    const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      if (!take_bytes({buffer.data(), static_cast<std::size_t>(got)})) {
        fail("the agent said something that makes no sense", kHostLost);
        ::kill(-pid_, SIGKILL);  // whoever that is would not heed a frame
        close_output();
      }
    } else if (got < 0 && errno == EAGAIN) {
      return;
    } else if (got == 0 || errno != EINTR) {
      close_output();
    }
  }
}

bool RemoteRanks::take_bytes(std::string_view bytes) {
  if (!greeted_ && !take_greeting(bytes)) {
    return before_greeting_.size() <= kMostNoise && !failed_;
  }
  const auto frames = reader_.feed(bytes);
  return frames && std::all_of(frames.value().begin(), frames.value().end(),
                               [this](const Frame& frame) { return take_frame(frame); });
}

/// Leaves in `bytes` what follows the greeting.
bool RemoteRanks::take_greeting(std::string_view& bytes) {
  const std::size_t had = before_greeting_.size();
  before_greeting_ += bytes;
  const auto at = before_greeting_.find(kGreeting);
  const auto end = at == std::string::npos ? at : before_greeting_.find('\n', at);
  if (end == std::string::npos) {
    return false;
  }
  const std::string version = before_greeting_.substr(at + kGreeting.size(), end - at - kGreeting.size());
  if (version != kVersion) {
    fail(fmt::format("has tutti {}, this host has {}: install the same", version, kVersion), kHostLost);
    return false;
  }
  read_errors();  // what the launch agent said before belongs to the time before
  greeted_ = true;
  bytes.remove_prefix(end + 1 - had);
  return true;
}

bool RemoteRanks::take_frame(const Frame& frame) {
  PayloadReader reader(frame.payload);
  const std::uint32_t number = reader.number();
  const Rank rank{static_cast<std::int32_t>(number)};
  const bool about_rank = frame.type >= FrameType::started && frame.type <= FrameType::ended;
  if (about_rank && !options_.share.holds(rank)) {
    return false;
  }
  switch (frame.type) {
    case FrameType::started: listener_.rank_started(rank, static_cast<pid_t>(reader.number()), options_.host); break;
    case FrameType::output: {
      const auto stream = reader.number() == 2 ? Stream::err : Stream::out;
      listener_.rank_output(rank, stream, reader.rest());
      break;
    }
    case FrameType::output_end:
      listener_.rank_output_end(rank, reader.number() == 2 ? Stream::err : Stream::out);
      break;
    case FrameType::ended: {
      const auto local = static_cast<std::size_t>(to_int(rank) - to_int(options_.share.first));
      if (!ended_[local]) {
        ended_[local] = true;
        listener_.rank_ended(rank, static_cast<int>(reader.number()));
      }
      break;
    }
    case FrameType::failed: fail(std::string(reader.rest()), static_cast<int>(number)); break;
    case FrameType::says: listener_.runner_says(fmt::format("{}: {}", options_.host, frame.payload)); break;
    default: return false;
  }
  return reader.ok() || frame.type == FrameType::says;
}

void RemoteRanks::read_errors() {
  std::array<char, 4096> buffer;
  const auto sink = [this](const Line& line) {
    last_errors_.add(line.text);
    if (greeted_) {  // before, it is the launch agent's chatter, shown if nothing comes of it
      listener_.runner_says(fmt::format("{}: {}", options_.host, line.text));
    }
  };
  while (errors_.valid()) {
    const ssize_t got = ::read(errors_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      error_lines_.feed({buffer.data(), static_cast<std::size_t>(got)}, sink);
    } else if (got < 0 && errno == EAGAIN) {
      return;
    } else if (got == 0 || errno != EINTR) {
      error_lines_.finish(sink);
      loop_.forget(errors_.get());
      errors_.reset();
    }
  }
}

void RemoteRanks::close_output() {
  loop_.forget(output_.get());
  output_.reset();
  if (agent_ended_) {
    lose_ranks();
  }
}

bool RemoteRanks::child_ended(pid_t pid, int status) {
  if (pid != pid_) {
    return false;
  }
  agent_ended_ = true;
  agent_status_ = status;
  read_errors();
  if (!output_.valid()) {
    lose_ranks();
  }
  return true;
}

std::string RemoteRanks::agent_end() const {
  const std::string how = WIFSIGNALED(agent_status_) ? "was killed by " + signal_text(WTERMSIG(agent_status_))
                                                     : fmt::format("exited with code {}", WEXITSTATUS(agent_status_));
  return fmt::format("'{}' {} {}", options_.command[0], how,
                     greeted_ ? "before its ranks ended" : "before any rank began");
}

/// The agent is gone. Ranks that it did not speak of any more are lost.
void RemoteRanks::lose_ranks() {
  if (std::find(ended_.begin(), ended_.end(), false) == ended_.end()) {
    return;
  }
  fail(agent_end(), kHostLost);
  for (std::size_t local = 0; local < ended_.size(); ++local) {
    if (!ended_[local]) {
      ended_[local] = true;
      listener_.rank_ended(Rank{to_int(options_.share.first) + static_cast<int>(local)}, std::nullopt);
    }
  }
}

void RemoteRanks::fail(const std::string& sentence, int code) {
  if (std::exchange(failed_, true)) {
    return;
  }
  std::string text = fmt::format("host {}: {}", options_.host, sentence);
  if (!greeted_) {
    for (const std::string& line : last_errors_.lines()) {
      text += "\n  | " + line;
    }
  }
  listener_.runner_failed(options_.share.first, text, code);
}

void RemoteRanks::signal_ranks(int signal) {
  send({FrameType::signal, PayloadWriter().number(static_cast<std::uint32_t>(signal)).take()});
}

void RemoteRanks::kill_ranks() { send({FrameType::kill, {}}); }

void RemoteRanks::pause(bool paused) {
  if (paused_ == paused) {
    return;
  }
  paused_ = paused;
  if (output_.valid()) {
    if (paused) {
      loop_.forget(output_.get());
    } else if (!watch_output()) {
      close_output();
    }
  }
}

void RemoteRanks::no_more_output() {
  read_errors();
  if (errors_.valid()) {
    loop_.forget(errors_.get());
    errors_.reset();
  }
  while (output_.valid() && !paused_) {
    read_output();
    if (output_.valid() && !paused_) {
      close_output();  // no writer is left, so what is empty now stays empty
    }
  }
}

}  // namespace tutti::cli
