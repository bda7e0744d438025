// Messages between two ranks, over every engine.

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/engine/hub.h"
#include "tutti/engine/test_ranks.h"

namespace tutti::engine {
namespace {

using ::testing::HasSubstr;

class Messages : public testing::TestWithParam<Kind> {};

/// A message under way whose end can be waited for.
struct Pending {
  std::shared_ptr<std::promise<Result<Rank>>> promise = std::make_shared<std::promise<Result<Rank>>>();
  Result<Rank> wait() { return promise->get_future().get(); }
};

Pending start_send(Engine& engine, int to, const std::vector<float>& values, std::uint64_t tag = 0,
                   Deadline deadline = soon()) {
  Pending pending;
  engine.send(Rank{to}, tag, bytes_of(values), deadline, [promise = pending.promise, to](const Status& status) {
    promise->set_value(status ? Result<Rank>(Rank{to}) : Result<Rank>(status.error()));
  });
  return pending;
}

Pending start_receive(Engine& engine, Rank from, std::vector<float>& values, std::uint64_t tag = 0,
                      Deadline deadline = soon()) {
  Pending pending;
  engine.receive(from, tag, writable(values), deadline,
                 [promise = pending.promise](const Result<Rank>& result) { promise->set_value(result); });
  return pending;
}

void expect_ok(const Result<Rank>& result) { ASSERT_TRUE(result.ok()) << result.error().message; }

TEST_P(Messages, AroundARingLongerThanTheMailbox) {
  run_engines(GetParam(), 3, [](Engine& engine) {
    const int me = to_int(engine.rank());
    const auto count = 3 * HubLayout::for_ranks(3).mailbox_bytes / sizeof(float) + 5;
    const auto mine = ramp(count, me);
    std::vector<float> other(count);
    auto sent = start_send(engine, (me + 1) % 3, mine);
    auto received = start_receive(engine, Rank{(me + 2) % 3}, other);
    expect_ok(sent.wait());
    expect_ok(received.wait());
    EXPECT_EQ(other, ramp(count, (me + 2) % 3));
  });
}

TEST_P(Messages, BothSendFirst) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    const int other = 1 - to_int(engine.rank());
    const auto mine = ramp(700'001, to_int(engine.rank()));
    std::vector<float> theirs(mine.size());
    auto sent = start_send(engine, other, mine);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    auto received = start_receive(engine, Rank{other}, theirs);
    expect_ok(sent.wait());
    expect_ok(received.wait());
    EXPECT_EQ(theirs, ramp(theirs.size(), other));
  });
}

TEST_P(Messages, KeepTheirOrder) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    std::vector<std::vector<float>> messages;
    std::vector<Pending> pending;
    for (int i = 0; i < 101; ++i) {
      messages.push_back(engine.rank() == Rank{0} ? ramp(static_cast<std::size_t>(i), i)
                                                  : std::vector<float>(static_cast<std::size_t>(i)));
    }
    for (auto& message : messages) {
      pending.push_back(engine.rank() == Rank{0} ? start_send(engine, 1, message)
                                                 : start_receive(engine, Rank{0}, message));
    }
    for (int i = 0; i < 101; ++i) {
      expect_ok(pending[static_cast<std::size_t>(i)].wait());
      EXPECT_EQ(messages[static_cast<std::size_t>(i)], ramp(static_cast<std::size_t>(i), i));
    }
  });
}

TEST_P(Messages, TagsMayBeTakenInAnyOrder) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    const std::size_t large = 300'007;
    if (engine.rank() == Rank{0}) {
      const auto first = ramp(large, 1);
      const auto second = ramp(5, 2);
      auto one = start_send(engine, 1, first, 11);
      auto two = start_send(engine, 1, second, 22);
      expect_ok(one.wait());
      expect_ok(two.wait());
    } else {
      std::vector<float> first(large);
      std::vector<float> second(5);
      expect_ok(start_receive(engine, Rank{0}, second, 22).wait());
      expect_ok(start_receive(engine, Rank{0}, first, 11).wait());
      EXPECT_EQ(first, ramp(large, 1));
      EXPECT_EQ(second, ramp(5, 2));
    }
  });
}

TEST_P(Messages, FromAnyRank) {
  run_engines(GetParam(), 3, [](Engine& engine) {
    if (engine.rank() != Rank{1}) {
      const auto mine = ramp(17, to_int(engine.rank()));
      expect_ok(start_send(engine, 1, mine).wait());
      return;
    }
    std::vector<bool> seen(3);
    for (int i = 0; i < 2; ++i) {
      std::vector<float> values(17);
      const auto from = start_receive(engine, kAnyRank, values).wait();
      expect_ok(from);
      EXPECT_EQ(values, ramp(17, to_int(from.value())));
      seen[to_index(from.value())] = true;
    }
    EXPECT_TRUE(seen[0] && seen[2]);
  });
}

TEST_P(Messages, DoNotWaitForCollectives) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    // Rank 1 enters the barrier only after the message that rank 0 sends before entering it, on another thread.
    std::vector<float> value{1.0F};
    auto pending = engine.rank() == Rank{0} ? start_send(engine, 1, value) : start_receive(engine, Rank{0}, value);
    expect_ok(pending.wait());
    EXPECT_TRUE(engine.run({.op = Op::barrier}, soon()).ok());
  });
}

TEST_P(Messages, EmptyOnesArriveToo) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    std::vector<float> nothing;
    expect_ok(
        (engine.rank() == Rank{0} ? start_send(engine, 1, nothing) : start_receive(engine, Rank{0}, nothing)).wait());
  });
}

TEST_P(Messages, AnotherLengthIsAnErrorOnBothSides) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    std::vector<float> values(engine.rank() == Rank{0} ? 500'000 : 7);
    const auto result =
        (engine.rank() == Rank{0} ? start_send(engine, 1, values) : start_receive(engine, Rank{0}, values)).wait();
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::mismatch);
    EXPECT_THAT(result.error().message, HasSubstr("rank 0 sends 2000000 bytes (tag 0) and rank 1 expects 28"));
  });
}

TEST_P(Messages, NothingComesUntilTheDeadline) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    if (engine.rank() == Rank{0}) {
      std::vector<float> values(3);
      const auto result =
          start_receive(engine, Rank{1}, values, 9, Deadline::after(std::chrono::milliseconds(50))).wait();
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.error().code, Code::timed_out);
      EXPECT_THAT(result.error().message, HasSubstr("receive by rank 0 from rank 1 (tag 9)"));
    } else {
      EXPECT_FALSE(engine.run({.op = Op::barrier}, soon()).ok());  // the group is broken for everybody
    }
  });
}

TEST_P(Messages, SentBeforeLeavingStillArrives) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    std::vector<float> values = ramp(1003, 0);
    if (engine.rank() == Rank{0}) {
      expect_ok(start_send(engine, 1, values).wait());
      return;  // leaves
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::vector<float> got(1003);
    expect_ok(start_receive(engine, Rank{0}, got).wait());
    EXPECT_EQ(got, values);
    const auto more = start_receive(engine, Rank{0}, got).wait();
    ASSERT_FALSE(more.ok());
    EXPECT_EQ(more.error().code, Code::peer_lost);
  });
}

TEST_P(Messages, FromAnyRankEndsWhenNobodyIsLeft) {
  run_engines(GetParam(), 3, [](Engine& engine) {
    if (engine.rank() == Rank{1}) {
      std::vector<float> values(3);
      const auto result = start_receive(engine, kAnyRank, values, 0, Deadline::never()).wait();
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.error().code, Code::peer_lost);
    }
  });
}

TEST_P(Messages, NothingMovesInABrokenGroup) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    // Half a large message is in the ring when the group breaks; a receive that comes then must not take it for
    // another.
    std::vector<float> large(700'001);
    auto first = engine.rank() == Rank{0} ? start_send(engine, 1, large) : start_receive(engine, Rank{0}, large);
    if (engine.rank() == Rank{1}) {
      engine.abort({Code::aborted, "enough"});
    }
    const auto ended = first.wait();
    while (!engine.broken()) {
      std::this_thread::yield();  // the large one may have been through first
    }
    std::vector<float> small(3);
    for (int i = 0; i < 5; ++i) {
      auto again = engine.rank() == Rank{0} ? start_send(engine, 1, small) : start_receive(engine, Rank{0}, small);
      EXPECT_FALSE(again.wait().ok());
    }
  });
}

TEST_P(Messages, AnUnexpectedLengthPutAsideIsAnErrorOnBothSides) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    std::vector<float> first(5);
    std::vector<float> second(7);
    if (engine.rank() == Rank{0}) {
      expect_ok(start_send(engine, 1, first, 11).wait());
      expect_ok(start_send(engine, 1, second, 22).wait());
      EXPECT_EQ(engine.run({.op = Op::barrier}, soon()).error().code, Code::mismatch);
    } else {
      expect_ok(start_receive(engine, Rank{0}, second, 22).wait());
      EXPECT_EQ(start_receive(engine, Rank{0}, second, 11).wait().error().code, Code::mismatch);
    }
  });
}

TEST_P(Messages, ToNobodyAreRefused) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    std::vector<float> values(3);
    EXPECT_EQ(start_send(engine, 2, values).wait().error().code, Code::invalid_argument);
    EXPECT_EQ(start_send(engine, to_int(engine.rank()), values).wait().error().code, Code::invalid_argument);
    EXPECT_EQ(start_receive(engine, Rank{-2}, values).wait().error().code, Code::invalid_argument);
    EXPECT_TRUE(engine.run({.op = Op::barrier}, soon()).ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Engines, Messages, testing::Values(Kind::threads, Kind::processes), kind_name);

}  // namespace
}  // namespace tutti::engine
