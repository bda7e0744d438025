#include "cli/remote_ranks.h"

#include <sys/wait.h>

#include <optional>

#include <gmock/gmock.h>

namespace tutti::cli {
namespace {

using ::testing::HasSubstr;

/// Remembers what a runner said of its end.
class Listener : public RankListener {
 public:
  void rank_started(Rank, pid_t, std::string_view) override {}
  void rank_output(Rank, Stream, std::string_view) override {}
  void rank_output_end(Rank, Stream) override {}
  void rank_ended(Rank, std::optional<int> status) override { lost += status ? 0 : 1; }
  void runner_failed(Rank, const std::string& text, int code_of_it) override {
    sentence = text;
    code = code_of_it;
  }
  void runner_says(const std::string&) override {}

  std::string sentence;
  int code = 0;
  int lost = 0;
};

TEST(RemoteRanks, AnAgentThatNeverGreetsIsGivenUp) {
  auto loop = EventLoop::make();
  ASSERT_TRUE(loop.ok());
  Listener listener;
  Inheritance inheritance{};
  ASSERT_EQ(::sigprocmask(SIG_SETMASK, nullptr, &inheritance.mask), 0);
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &inheritance.descriptors), 0);
  RemoteRanks ranks({.host = "gamma",
                     .command = {"sh", "-c", "echo 'Password:' >&2; exec sleep 60"},
                     .share = {.command = {"p"}, .variables = {}, .count = 3, .world_size = 3},
                     .secret = rendezvous::Secret::make().value(),
                     .inheritance = inheritance,
                     .greeting_limit = std::chrono::milliseconds(700)},
                    loop.value(), listener);
  ASSERT_TRUE(ranks.start().ok());
  const Deadline patience = Deadline::after(std::chrono::seconds(20));
  while (listener.lost < 3 && !patience.expired()) {
    loop.value().run_once(Deadline::after(std::chrono::milliseconds(20)));
    int status = 0;
    if (const pid_t ended = ::waitpid(-1, &status, WNOHANG); ended > 0) {
      ranks.child_ended(ended, status);
    }
  }
  EXPECT_EQ(listener.lost, 3);
  EXPECT_EQ(listener.code, 255);
  EXPECT_THAT(listener.sentence, HasSubstr("host gamma: 'sh' did not start an agent there within 0.7 s"));
  EXPECT_THAT(listener.sentence, HasSubstr("  | Password:"));
}

}  // namespace
}  // namespace tutti::cli
