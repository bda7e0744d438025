// Ranks that are killed at any instant of random collectives: every survivor's call ends with an error that names them,
// within milliseconds, and nothing is left behind.

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/chaos/long_run.h"
#include "tests/chaos/random_calls.h"
#include "tutti/engine/test_ranks.h"

namespace tutti::chaos {
namespace {

using engine::Engine;
using std::chrono::microseconds;

std::int64_t now_us() {
  return std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// What the processes tell each other about one kill.
struct Board {
  std::atomic<std::int64_t> killed_at{0};
  std::atomic<std::int64_t> called_at[4] = {};  ///< the call that failed
  std::atomic<std::int64_t> noticed_at[4] = {};
};

struct SharedBoard {
  SharedBoard()
      : board(new(::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Board) {}
  ~SharedBoard() { ::munmap(board, sizeof(Board)); }
  Board* board;
};

struct Plan {
  int ranks = 3;
  unsigned number = 0;
  std::size_t resident_bytes = 0;  ///< of the one that is killed
};

/// One life of one rank: random calls until one fails. The victim ends itself from another thread.
void live(Engine& engine, const Plan& plan, Board& board) {
  std::mt19937 random(seed() + plan.number);
  const Rank victim{static_cast<std::int32_t>(random() % static_cast<unsigned>(plan.ranks))};
  const auto delay = microseconds(random() % 3000);
  std::vector<char> resident(engine.rank() == victim ? plan.resident_bytes : 0, 'x');
  std::jthread killer;
  ASSERT_TRUE(engine.run({.op = engine::Op::barrier}, engine::soon()).ok());
  if (engine.rank() == victim) {
    killer = std::jthread([&board, delay] {
      std::this_thread::sleep_for(delay);
      board.killed_at = now_us();
      ::kill(::getpid(), SIGKILL);
    });
  }
  for (;;) {
    const RandomCall call(engine, draw(random, plan.ranks, 1 << 20));
    board.called_at[to_index(engine.rank())] = now_us();
    const auto status = engine.run(call.call(), engine::soon());
    if (status) {
      ASSERT_TRUE(call.right(engine)) << "a partial result was taken for a whole one";
      continue;
    }
    board.noticed_at[to_index(engine.rank())] = now_us();
    EXPECT_EQ(status.error().code, Code::peer_lost) << status.error().message;
    EXPECT_EQ(status.error().rank, victim) << status.error().message;
    EXPECT_FALSE(engine.run({.op = engine::Op::barrier}, engine::soon()).ok());
    return;
  }
}

/// Microseconds to each survivor's error: from the kill, or from its call when it was busy with something else before.
std::vector<std::int64_t> kill_once(const Plan& plan) {
  const SharedBoard shared;
  const auto statuses = engine::run_processes(plan.ranks, [&](Engine& engine) { live(engine, plan, *shared.board); });
  int killed = 0;
  std::vector<std::int64_t> delays;
  for (std::size_t rank = 0; rank < statuses.size(); ++rank) {
    if (WIFSIGNALED(statuses[rank])) {
      EXPECT_EQ(WTERMSIG(statuses[rank]), SIGKILL);
      ++killed;
      continue;
    }
    EXPECT_EQ(statuses[rank], 0) << "rank " << rank << ", number " << plan.number;
    const auto since = std::max<std::int64_t>(shared.board->killed_at, shared.board->called_at[rank]);
    delays.push_back(shared.board->noticed_at[rank] - since);
  }
  EXPECT_EQ(killed, 1);
  return delays;
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

void report(const char* what, std::vector<std::int64_t> delays) {
  std::sort(delays.begin(), delays.end());
  const auto at = [&](double fraction) {
    return delays[static_cast<std::size_t>(fraction * static_cast<double>(delays.size() - 1))];
  };
  fmt::print("{}: {} survivors noticed after {} us (median), {} us (99th percentile), {} us (latest)\n", what,
             delays.size(), at(0.5), at(0.99), delays.back());
}

TEST(Kills, EverySurvivorNamesTheDead) {
  const auto descriptors = open_descriptors();
  std::vector<std::int64_t> delays;
  const int kills = times(60, 2000);
  for (int i = 0; i < kills; ++i) {
    const auto noticed = kill_once({.ranks = 2 + i % 3, .number = static_cast<unsigned>(i)});
    delays.insert(delays.end(), noticed.begin(), noticed.end());
    ASSERT_FALSE(testing::Test::HasFailure()) << "kill " << i << " of seed " << seed();
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  report("kills", delays);
}

TEST(Kills, AlsoOfAProcessWithAGigabyte) {
  std::vector<std::int64_t> delays;
  for (int i = 0; i < times(3, 100); ++i) {
    const auto noticed =
        kill_once({.ranks = 3, .number = 10'000U + static_cast<unsigned>(i), .resident_bytes = std::size_t{1} << 30});
    delays.insert(delays.end(), noticed.begin(), noticed.end());
    ASSERT_FALSE(testing::Test::HasFailure()) << "kill " << i << " of seed " << seed();
  }
  report("kills at 1 GB resident", delays);
}

}  // namespace
}  // namespace tutti::chaos
