#include "tutti/engine/mpi/far_links.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::engine::mpi {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// What one rank has begun: of another the k-th send meets the k-th receive, as MPI has it. Short sends are over at
/// once, long ones and those until they are taken when they met.
class Memory final : public Requests {
 public:
  struct Begun {
    int peer;
    std::byte* data;
    std::size_t bytes;
    std::uint32_t number;
    bool told = false;  // that it is over
  };

  explicit Memory(int me) : me_(me) {}
  void join(std::vector<Memory*> all) { all_ = std::move(all); }

  int send(Communicator /*where*/, int to, int /*tag*/, const std::byte* data, std::size_t bytes,
           std::uint32_t number) override {
    constexpr std::size_t kUnasked = std::size_t{64} << 10;
    begin_send(to, data, bytes, number, bytes <= kUnasked);
    return fails;
  }
  int send_until_taken(Communicator /*where*/, int to, int /*tag*/, const std::byte* data, std::size_t bytes,
                       std::uint32_t number) override {
    begin_send(to, data, bytes, number, false);
    const auto under_way = std::accumulate(sends.begin(), sends.end(), std::size_t{0},
                                           [](std::size_t sum, const Begun& one) { return sum + one.bytes; });
    most_under_way = std::max(most_under_way, under_way);
    return fails;
  }
  int receive(Communicator /*where*/, int from, int /*tag*/, std::byte* data, std::size_t bytes,
              std::uint32_t number) override {
    receives.push_back({from, data, bytes, number});
    return fails;
  }
  int all_reduce(Communicator, const std::byte*, std::byte*, std::size_t, Element, Reducer, std::uint32_t) override {
    return -1;
  }
  int broadcast(Communicator, std::byte*, std::size_t, int, std::uint32_t) override { return -1; }
  int all_gather(Communicator, const std::byte*, std::byte*, std::size_t, std::uint32_t) override { return -1; }
  int all_to_all(Communicator, const std::byte*, std::byte*, std::size_t, std::uint32_t) override { return -1; }
  std::size_t pending() const override { return sends.size() + receives.size(); }
  bool cancel_all() override { return true; }

  int poll(std::vector<Over>& over) override {
    for (auto receive = receives.begin(); receive != receives.end();) {
      auto& from = *all_[static_cast<std::size_t>(receive->peer)];
      const auto send =
          std::find_if(from.sends.begin(), from.sends.end(), [this](const Begun& one) { return one.peer == me_; });
      if (send == from.sends.end()) {
        ++receive;
        continue;
      }
      EXPECT_LE(send->bytes, receive->bytes) << "MPI would say that it does not fit";
      std::memcpy(receive->data, send->data, std::min(send->bytes, receive->bytes));
      if (send->bytes > FarLinks::kPart) {
        std::this_thread::sleep_for(takes);
      }
      over.push_back({.number = receive->number, .error = breaks, .from = receive->peer, .bytes = send->bytes});
      if (!send->told) {
        from.ends_.push_back({.number = send->number});
      }
      from.sends.erase(send);
      receive = receives.erase(receive);
    }
    over.insert(over.end(), ends_.begin(), ends_.end());
    ends_.clear();
    return 0;
  }

  std::vector<Begun> sends;
  std::vector<Begun> receives;
  std::chrono::milliseconds takes{0};
  std::size_t longest = 0;
  std::size_t most_under_way = 0;
  int fails = 0;
  int breaks = 0;

 private:
  void begin_send(int to, const std::byte* data, std::size_t bytes, std::uint32_t number, bool over) {
    longest = std::max(longest, bytes);
    sends.push_back({to, const_cast<std::byte*>(data), bytes, number, over});
    if (over) {
      ends_.push_back({.number = number});
    }
  }

  const int me_;
  std::vector<Memory*> all_;
  std::vector<Over> ends_;
};

/// Ranks 0 and 1, each on a host of its own.
class FarLinksTest : public ::testing::Test {
 protected:
  FarLinksTest() {
    for (auto* memory : {&first, &second}) {
      memory->join({&first, &second});
    }
  }

  /// Until nothing is under way: what is over at each of them, in order.
  std::vector<std::vector<std::uint32_t>> finish() {
    std::vector<std::vector<std::uint32_t>> over(2);
    for (int i = 0; i < 10'000 && !(one.is_idle() && other.is_idle()); ++i) {
      EXPECT_EQ(one.poll(over[0], moved), 0);
      EXPECT_EQ(other.poll(over[1], moved), 0);
    }
    EXPECT_TRUE(one.is_idle() && other.is_idle()) << "they wait for each other";
    return over;
  }

  void go_in_parts(bool in_parts) {
    one.set_in_parts(in_parts);
    other.set_in_parts(in_parts);
  }

  bool moved = false;
  Memory first{0};
  Memory second{1};
  FarLinks one{first, {}, 1, 2};
  FarLinks other{second, {}, 1, 2};
};

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  std::generate(bytes.begin(), bytes.end(), [&random] { return static_cast<std::byte>(random()); });
  return bytes;
}

TEST_F(FarLinksTest, LongMessagesGoWhole) {
  const auto sent = random_bytes(1 << 20, 1);
  std::vector<std::byte> got(sent.size());
  one.send(Rank{1}, sent, 7);
  other.receive(Rank{0}, got, 9);
  EXPECT_THAT(finish(), ElementsAre(ElementsAre(7), ElementsAre(9)));
  EXPECT_EQ(got, sent);
  EXPECT_EQ(first.longest, sent.size());
}

TEST_F(FarLinksTest, OrInPartsOfWhichSomeAreUnderWay) {
  go_in_parts(true);
  const auto sent = random_bytes(1 << 20, 2);
  std::vector<std::byte> got(sent.size());
  one.send(Rank{1}, sent, 7);
  other.receive(Rank{0}, got, 9);
  EXPECT_EQ(second.receives.size(), FarLinks::kAtOnce / FarLinks::kPart);
  EXPECT_THAT(finish(), ElementsAre(ElementsAre(7), ElementsAre(9)));
  EXPECT_EQ(got, sent);
  EXPECT_EQ(first.longest, FarLinks::kPart);
  EXPECT_EQ(first.most_under_way, FarLinks::kAtOnce);
}

TEST_F(FarLinksTest, TellsWhereBytesComeSlowly) {
  const auto sent = random_bytes(8 << 20, 3);
  std::vector<std::byte> got(sent.size());
  second.takes = std::chrono::milliseconds(80);  // 105 MB/s
  one.send(Rank{1}, sent, 7);
  other.receive(Rank{0}, got, 9);
  finish();
  EXPECT_TRUE(other.is_slow());
  EXPECT_FALSE(one.is_slow()) << "it received nothing";
}

TEST_F(FarLinksTest, PartsComeOneBehindTheOther) {
  go_in_parts(true);
  const auto sent = random_bytes(3 << 20, 3);
  std::vector<std::byte> got(sent.size());
  for (unsigned i = 0; i < 3; ++i) {
    one.send(Rank{1}, std::span(sent).subspan(i << 20, 1 << 20), i);
    other.receive(Rank{0}, std::span(got).subspan(i << 20, 1 << 20), i);
  }
  std::vector<std::uint32_t> over;
  while (over.empty()) {
    ASSERT_EQ(one.poll(over, moved), 0);
    over.clear();
    ASSERT_EQ(other.poll(over, moved), 0);
  }
  EXPECT_THAT(over, ElementsAre(0));
  EXPECT_NE(std::memcmp(got.data() + (2 << 20), sent.data() + (2 << 20), 1 << 10), 0) << "the last is there, too";
  finish();
  EXPECT_EQ(got, sent);
}

TEST_F(FarLinksTest, AnyLengthsBothWaysInEitherWay) {
  constexpr std::size_t kPart = FarLinks::kPart;
  const std::vector<std::size_t> lengths{1,       4096, kPart - 1, kPart,  kPart + 1, kPart + 4096, 2 * kPart,
                                         500'003, 17,   2'000'000, 61'000, 8 * kPart, 9 * kPart,    9 * kPart + 1};
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    go_in_parts(seed % 2 == 1);
    std::vector<std::vector<std::byte>> sent;
    std::vector<std::vector<std::byte>> got;
    for (unsigned i = 0; i < 24; ++i) {
      sent.push_back(random_bytes(lengths[random() % lengths.size()], seed + i));
      got.emplace_back(sent.back().size());
    }
    std::vector<std::uint32_t> over;
    unsigned begun[4]{};  // sends and receives of one, then of the other: of messages 0, 2, ... and 1, 3, ...
    while (std::any_of(std::begin(begun), std::end(begun), [](unsigned count) { return count < 12; })) {
      const auto what = random() % 5;
      if (what == 4) {
        ASSERT_EQ((random() % 2 == 0 ? one : other).poll(over, moved), 0);
        continue;
      }
      if (begun[what] == 12) {
        continue;
      }
      const auto index = 2 * begun[what]++;
      switch (what) {
        case 0: one.send(Rank{1}, sent[index], index); break;
        case 1: one.receive(Rank{1}, got[index + 1], index + 1); break;
        case 2: other.send(Rank{0}, sent[index + 1], index + 1); break;
        default: other.receive(Rank{0}, got[index], index); break;
      }
    }
    finish();
    ASSERT_EQ(got, sent) << "seed " << seed;
  }
}

TEST_F(FarLinksTest, WhatFailedIsStillAwaited) {
  const auto sent = random_bytes(100, 4);
  std::vector<std::byte> got(sent.size());
  one.send(Rank{1}, sent, 7);
  other.receive(Rank{0}, got, 9);
  second.breaks = 15;
  std::vector<std::uint32_t> over;
  EXPECT_EQ(other.poll(over, moved), 15);
  EXPECT_THAT(over, IsEmpty());
  EXPECT_THAT(other.awaited(), ElementsAre(Rank{0}));
  other.forget();
  EXPECT_TRUE(other.is_idle());
}

TEST_F(FarLinksTest, BeginningMayFail) {
  const auto sent = random_bytes(100'000, 5);
  first.fails = 13;
  EXPECT_EQ(one.send(Rank{1}, sent, 7), 13);
  EXPECT_THAT(one.awaited(), ElementsAre(Rank{1}));
}

}  // namespace
}  // namespace tutti::engine::mpi
