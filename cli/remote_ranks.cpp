#include "cli/remote_ranks.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>

#include "cli/verdict.h"
#include "tutti/version.h"

namespace tutti::cli {
namespace {

constexpr std::size_t kMostNoise = 64 * 1024;
constexpr int kHostLost = 255;  // as ssh exits when it cannot

}  // namespace

RemoteRanks::RemoteRanks(Options options, EventLoop& loop, RankListener& listener)
    : options_(std::move(options)),
      loop_(loop),
      listener_(listener),
      pipes_(loop, {.output = [this](std::string_view bytes) { on_output(bytes); },
                    .output_end = [this] { on_output_end(); },
                    .error_line = [this](const Line& line) { on_error_line(line.text); }}),
      ended_(static_cast<std::size_t>(options_.share.count), false) {}

RemoteRanks::~RemoteRanks() { loop_.forget(greeting_timer_.get()); }

Status RemoteRanks::start() {
  if (Status started = pipes_.start(options_.command, options_.inheritance); !started) {
    return started;
  }
  if (Status watched = watch_greeting(); !watched) {
    return watched;
  }
  send({FrameType::share, encode_share(options_.share)});
  const auto& bytes = options_.secret.bytes();
  send({FrameType::secret, std::string(bytes.begin(), bytes.end())});
  return {};
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
  if (greeted_ || agent_status_) {
    return;
  }
  pipes_.read_errors();  // what it asked for, perhaps
  fail(fmt::format("'{}' did not start an agent there within {} s", options_.command[0],
                   std::chrono::duration<double>(options_.greeting_limit).count()),
       kHostLost);
  pipes_.kill();  // its end loses the ranks
}

void RemoteRanks::on_output(std::string_view bytes) {
  if (!take_bytes(bytes)) {
    fail("the agent said something that makes no sense", kHostLost);
    pipes_.kill();  // whoever that is would not heed a frame
    pipes_.close_output();
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
  pipes_.read_errors();  // what the launch agent said before belongs to the time before
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

void RemoteRanks::on_error_line(std::string_view line) {
  last_errors_.add(line);
  if (greeted_) {  // before, it is the launch agent's chatter, shown if nothing comes of it
    listener_.runner_says(fmt::format("{}: {}", options_.host, line));
  }
}

void RemoteRanks::on_output_end() {
  if (agent_status_) {
    lose_ranks();
  }
}

bool RemoteRanks::child_ended(pid_t pid, int status) {
  if (pid != pipes_.pid()) {
    return false;
  }
  agent_status_ = status;
  pipes_.read_errors();
  if (!pipes_.output_open()) {
    lose_ranks();
  }
  return true;
}

std::string RemoteRanks::agent_end() const {
  return fmt::format("'{}' {} {}", options_.command[0], end_text(agent_status_.value_or(0)),
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

}  // namespace tutti::cli
