#include "tutti/plan/calibrate.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/plan/simulate.h"

namespace tutti::plan {
namespace {

using testing::HasSubstr;

/// What is to be found again.
Network truth() {
  Network network;
  network.name = "two hosts";
  network.levels = {
      {.name = "host", .members = 4, .latency = 4e-7, .send = {1.5e-7, 1 / 9e9}, .receive = {2.5e-7, 1 / 7e9}},
      {.name = "switch", .latency = 3e-5, .send = {4e-6, 0}, .receive = {6e-6, 0}, .link = 2.4e9}};
  network.levels[1].stream = 1.2e9;
  network.processors = {.copy = 9e9, .reduce = 6e9, .memory = 2e10};
  network.processors.slowdown = {{65536, 1}, {1 << 20, 1.2}, {1 << 25, 2}};
  return network;
}

/// Times as the model gives them, each off by up to `noise`.
class Stopwatch {
 public:
  explicit Stopwatch(double noise) : noise_(noise) {}

  Timings timings() {
    Timings all;
    using Kind = TimedMessage::Kind;
    for (int again = 0; again < 5; ++again) {
      for (const double bytes : {1.0, 512.0, 8192.0, 65536.0, 1048576.0}) {
        for (const std::size_t level : {0, 1}) {
          message(all, {.kind = Kind::ping_pong, .level = level, .bytes = bytes});
        }
      }
      for (const int peers : {2, 3}) {
        for (const double bytes : {1.0, 65536.0}) {
          for (const auto kind : {Kind::fan_out, Kind::fan_in}) {
            message(all, {.kind = kind, .level = 0, .bytes = bytes, .peers = peers});
          }
        }
        message(all, {.kind = Kind::fan_out, .level = 1, .bytes = 1, .peers = peers});
        message(all, {.kind = Kind::fan_in, .level = 1, .bytes = 1, .peers = peers});
      }
      for (const int peers : {1, 4}) {
        message(all, {.kind = Kind::crossing, .level = 1, .bytes = 8e6, .peers = peers});
      }
      for (const double bytes : {65536.0, 1048576.0, 33554432.0}) {
        for (const int ranks : {1, 4}) {
          work(all, {.kind = TimedWork::Kind::copy, .bytes = bytes, .ranks = ranks});
          work(all, {.kind = TimedWork::Kind::reduce, .bytes = bytes, .ranks = ranks});
        }
      }
    }
    return all;
  }

 private:
  double noisy(double seconds) { return seconds * std::uniform_real_distribution(1 - noise_, 1 + noise_)(random_); }

  void message(Timings& all, TimedMessage timed) {
    const auto& level = truth_.levels[timed.level];
    const double out = timed.kind == TimedMessage::Kind::fan_out ? timed.peers : 1;
    const double in = timed.kind == TimedMessage::Kind::fan_in ? timed.peers : 1;
    auto speed = level.stream;
    if (timed.kind == TimedMessage::Kind::crossing) {
      speed = std::min(speed, level.link / timed.peers);
    }
    timed.seconds = level.latency + out * (level.send.seconds + level.send.seconds_per_byte * timed.bytes) +
                    in * (level.receive.seconds + level.receive.seconds_per_byte * timed.bytes) +
                    (speed > 0 ? timed.bytes / speed : 0);
    timed.seconds = noisy(timed.seconds);
    all.messages.push_back(timed);
  }

  void work(Timings& all, TimedWork timed) {
    const auto processors = at_size(truth_, timed.bytes).processors;
    const auto speed = timed.kind == TimedWork::Kind::copy ? processors.copy : processors.reduce;
    timed.seconds = noisy(timed.bytes / std::min(speed, processors.memory / timed.ranks));
    all.works.push_back(timed);
  }

  double noise_;
  Network truth_ = truth();
  std::mt19937 random_{7};
};

/// A network that knows its shape alone.
Network bare() {
  Network network;
  network.name = "two hosts";
  network.levels = {{.name = "host", .members = 4}, {.name = "switch"}};
  return network;
}

void expect_near(const Network& found, double part) {
  const auto near = [&](double value, double right, const char* what) {
    EXPECT_NEAR(value, right, part * right) << what;
  };
  const auto right = truth();
  near(found.levels[0].send.seconds_per_byte, right.levels[0].send.seconds_per_byte, "send byte");
  near(found.levels[0].receive.seconds_per_byte, right.levels[0].receive.seconds_per_byte, "receive byte");
  // Of a short message it is the sum that counts: what is latency, and what a processor's, is harder to tell apart.
  for (const std::size_t level : {0, 1}) {
    const auto sum = [&](const Level& of) { return of.latency + of.send.seconds + of.receive.seconds; };
    near(sum(found.levels[level]), sum(right.levels[level]), "short message");
  }
  near(found.levels[1].stream, right.levels[1].stream, "stream");
  near(found.levels[1].link, right.levels[1].link, "link");
  near(found.processors.copy, right.processors.copy, "copy");
  near(found.processors.reduce, right.processors.reduce, "reduce");
  near(found.processors.memory, right.processors.memory, "memory");
  ASSERT_EQ(found.processors.slowdown.size(), 3);
  near(found.processors.slowdown[2].factor, 2, "slowdown");
}

TEST(Calibrate, ExactTimesGiveTheFiguresBack) {
  const auto found = calibrate(bare(), Stopwatch(0).timings());
  ASSERT_TRUE(found) << found.error().message;
  expect_near(found.value(), 0.02);
  EXPECT_NEAR(found.value().levels[0].send.seconds, 1.5e-7, 1e-9);
  EXPECT_NEAR(found.value().levels[1].receive.seconds, 6e-6, 1e-7);
}

TEST(Calibrate, NoiseOfFivePerCentMovesThemLittle) {
  const auto found = calibrate(bare(), Stopwatch(0.05).timings());
  ASSERT_TRUE(found) << found.error().message;
  expect_near(found.value(), 0.06);
  EXPECT_NEAR(found.value().levels[0].send.seconds, 1.5e-7, 0.4 * 1.5e-7);
}

TEST(Calibrate, SaysWhatIsMissing) {
  auto timings = Stopwatch(0).timings();
  std::erase_if(timings.messages,
                [](const TimedMessage& timed) { return timed.level == 1 && timed.kind == TimedMessage::Kind::fan_in; });
  EXPECT_THAT(calibrate(bare(), timings).error().message, HasSubstr("level 'switch': no fan_in was timed"));
  timings = Stopwatch(0).timings();
  timings.messages[0].seconds = 0;
  EXPECT_THAT(calibrate(bare(), timings).error().message, HasSubstr("a message without time, bytes or peers"));
  timings = Stopwatch(0).timings();
  timings.works.clear();
  EXPECT_THAT(calibrate(bare(), timings).error().message, HasSubstr("no copy by one rank was timed"));
}

TEST(Calibrate, PlansThatWereRunPullFiguresTowardsThem) {
  // What runs is slower than what was timed alone: latencies by half, bytes of messages by a quarter.
  auto real = truth();
  for (auto& level : real.levels) {
    level.latency *= 1.5;
    level.send.seconds_per_byte *= 1.25;
    level.receive.seconds_per_byte *= 1.25;
  }
  std::vector<TimedPlan> plans;
  for (const auto algorithm : {Algorithm::ring, Algorithm::direct, Algorithm::recursive_doubling}) {
    for (const std::size_t bytes : {1000, 100'000, 3'000'000}) {
      for (const int ranks : {3, 7}) {
        const Request request{.algorithm = algorithm, .ranks = ranks};
        plans.push_back({request, bytes, simulate(build(request).value(), bytes, real).value().seconds});
      }
    }
  }
  const auto found = refine(truth(), plans);
  ASSERT_TRUE(found) << found.error().message;
  for (const int ranks : {4, 8}) {
    for (const std::size_t bytes : {10'000, 1'000'000}) {
      const auto plan = build({.algorithm = Algorithm::halving_doubling, .ranks = ranks}).value();
      const auto right = simulate(plan, bytes, real).value().seconds;
      EXPECT_NEAR(simulate(plan, bytes, found.value()).value().seconds, right, 0.04 * right) << ranks << " " << bytes;
    }
  }
}

}  // namespace
}  // namespace tutti::plan
