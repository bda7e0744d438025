#include "cli/host_agent.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "cli/child.h"
#include "cli/event_loop.h"
#include "cli/frames.h"
#include "cli/front.h"
#include "cli/limits.h"
#include "cli/local_ranks.h"
#include "cli/reaper.h"
#include "cli/writer.h"
#include "tutti/rendezvous/secret.h"
#include "tutti/version.h"

namespace tutti::cli {
namespace {

constexpr std::chrono::seconds kKillWait{1};
constexpr std::chrono::milliseconds kTurn{20};

/// The agent's main part: commands in, reports out. One thread.
class HostAgent : public RankListener {
 public:
  HostAgent(Guarded guarded, EventLoop& loop, Writer& writer)
      : guarded_(std::move(guarded)),
        inheritance_{.mask = guarded_.original_mask,
                     .ignored = guarded_.original_ignored,
                     .descriptors = raise_descriptor_limit()},
        loop_(loop),
        writer_(writer) {}

  int run() {
    if (const Status watched = watch_everything(); !watched) {
      return fail(watched.error());
    }
    writer_.push(STDOUT_FILENO, fmt::format("{}{}\n", kGreeting, kVersion));
    while (!over()) {
      loop_.run_once(Deadline::never());
    }
    finish();
    return 0;
  }

  void rank_started(Rank rank, pid_t pid, std::string_view) override {
    tell(FrameType::started, PayloadWriter().number(of(rank)).number(static_cast<std::uint32_t>(pid)).take());
  }
  void rank_output(Rank rank, Stream stream, std::string_view bytes) override {
    tell(FrameType::output, PayloadWriter().number(of(rank)).number(of(stream)).rest(bytes).take());
    if (writer_.full()) {
      ranks_->pause(true);
    }
  }
  void rank_output_end(Rank rank, Stream stream) override {
    tell(FrameType::output_end, PayloadWriter().number(of(rank)).number(of(stream)).take());
  }
  void rank_ended(Rank rank, std::optional<int> status) override {
    --ranks_left_;
    tell(FrameType::ended,
         PayloadWriter().number(of(rank)).number(static_cast<std::uint32_t>(status.value_or(0))).take());
  }
  void runner_failed(Rank, const std::string& sentence, int code) override {
    tell(FrameType::failed, PayloadWriter().number(static_cast<std::uint32_t>(code)).rest(sentence).take());
  }
  void runner_says(const std::string& line) override { tell(FrameType::says, line); }

 private:
  static std::uint32_t of(Rank rank) { return static_cast<std::uint32_t>(to_int(rank)); }
  static std::uint32_t of(Stream stream) { return static_cast<std::uint32_t>(stream); }
  void tell(FrameType type, std::string payload) { writer_.push(STDOUT_FILENO, encode({type, std::move(payload)})); }

  int fail(const Error& error) {
    runner_failed(Rank{0}, error.message, spawn_exit_code(error));
    writer_.flush(Deadline::after(kKillWait));
    return 1;
  }

  Status watch_everything() {
    auto children = watch_children(loop_, [this](pid_t pid, int status) { pass_on(pid, status); });
    if (!children) {
      return children.error();
    }
    children_ = std::move(children).value();
    const std::pair<int, EventLoop::Handler> watches[] = {
        {STDIN_FILENO, [this](auto) { on_input(); }},
        {guarded_.orders.get(), [this](auto) { on_orders(); }},
        {writer_.wakeup(), [this](auto) { on_writer(); }},
    };
    for (const auto& [fd, handler] : watches) {
      if (Status watched = loop_.watch(fd, EPOLLIN, handler); !watched) {
        return watched;
      }
    }
    return {};
  }

  void on_orders() {
    unsigned char signal = 0;
    if (::read(guarded_.orders.get(), &signal, 1) != 1 || !only_pauses(signal)) {
      leave_at_once();  // who started the agent is going away
    }
    signal_ranks(signal);
  }

  void signal_ranks(int signal) {
    if (ranks_) {
      ranks_->signal_ranks(signal);
    }
  }

  void on_input() {
    std::array<char, 64 * 1024> buffer;
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
      leave_at_once();
    }
    const auto frames = reader_.feed({buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))});
    if (!frames) {
      leave_at_once();
    }
    for (const Frame& frame : frames.value()) {
      obey(frame);
    }
  }

  void obey(const Frame& frame) {
    switch (frame.type) {
      case FrameType::share: share_ = frame.payload; break;
      case FrameType::secret: start(frame.payload); break;
      case FrameType::signal: {
        const auto signal = static_cast<int>(PayloadReader(frame.payload).number());
        stopping_ = stopping_ || !only_pauses(signal);
        signal_ranks(signal);
        break;
      }
      case FrameType::kill:
        killed_ = true;
        if (ranks_) {
          ranks_->kill_ranks();
        }
        break;
      default: leave_at_once();
    }
  }

  void start(std::string_view bytes) {
    auto share = decode_share(share_);
    std::array<std::uint8_t, rendezvous::Secret::kBytes> secret{};
    if (!share || bytes.size() != secret.size() || ranks_) {
      leave_at_once();
    }
    std::copy(bytes.begin(), bytes.end(), secret.begin());
    auto file = rendezvous::Secret(secret).descriptor();
    Status started = file ? Status() : Status(file.error());
    if (started) {
      secret_file_ = std::move(file).value();
      ranks_left_ = share.value().count;
      ranks_ = std::make_unique<LocalRanks>(
          LocalRanks::Options{
              .share = std::move(share).value(), .secret = secret_file_.get(), .inheritance = inheritance_},
          loop_, *this);
      started = ranks_->start();
    }
    if (!started) {
      runner_failed(Rank{0}, started.error().message, spawn_exit_code(started.error()));
      killed_ = true;
      ranks_left_ = 0;
    }
  }

  void pass_on(pid_t pid, int status) {
    if (ranks_) {
      ranks_->child_ended(pid, status);
    }
  }

  void on_writer() {
    if (!writer_.acknowledge().empty()) {
      leave_at_once();  // the launcher listens no more
    }
    if (ranks_ && !writer_.full()) {
      ranks_->pause(false);
    }
  }

  /// All ranks have ended; in a stop, programs whose wrapper is gone have their grace too.
  bool over() const { return ranks_left_ == 0 && (killed_ || !stopping_ || !ranks_ || !ranks_->groups_left()); }

  void finish() {
    end_descendants(Deadline::after(kKillWait), [this](pid_t pid, int status) { pass_on(pid, status); });
    while (ranks_ && !ranks_->drained()) {
      ranks_->no_more_output();
      loop_.run_once(Deadline::after(ranks_->drained() ? Deadline::Milliseconds(0) : kTurn));
    }
    while (!writer_.flush(Deadline::after(kTurn))) {
      loop_.run_once(Deadline::now());
    }
  }

  [[noreturn]] void leave_at_once() {
    end_descendants(Deadline::after(kKillWait), [](pid_t, int) {});
    ::_exit(1);
  }

  Guarded guarded_;
  Inheritance inheritance_;
  EventLoop& loop_;
  Writer& writer_;
  FileDescriptor children_;
  FrameReader reader_;
  std::string share_;
  FileDescriptor secret_file_;
  std::unique_ptr<LocalRanks> ranks_;
  int ranks_left_ = 1;  ///< until the share says how many
  bool stopping_ = false;
  bool killed_ = false;
};

}  // namespace

int host_agent_command() {
  return run_guarded("tutti host-agent", [](Guarded guarded) {
    auto writer = Writer::make();
    auto loop = EventLoop::make();
    if (!writer || !loop) {
      fmt::print(stderr, "tutti host-agent: {}\n", writer ? loop.error().message : writer.error().message);
      return 1;
    }
    return HostAgent(std::move(guarded), loop.value(), *writer.value()).run();
  });
}

}  // namespace tutti::cli
