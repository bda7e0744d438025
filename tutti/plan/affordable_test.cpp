#include "tutti/plan/affordable.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace tutti::plan {
namespace {

Network slow_to_send_much() {
  Network network;
  network.processors = {.copy = 1e10, .reduce = 1e10, .sum = 1e10};
  network.levels.push_back({.name = "host", .latency = 1e-7, .stream = 1e9});
  return network;
}

std::size_t count(const std::vector<std::optional<Choice>>& choices, Algorithm algorithm) {
  return static_cast<std::size_t>(std::count_if(choices.begin(), choices.end(), [&](const auto& choice) {
    return choice && choice->kind == Choice::Kind::plan && choice->algorithm == algorithm;
  }));
}

TEST(Affordable, LeavesOutWhatTheNetworkSaysIsSlow) {
  const GroupShape shape{.engine = "shm", .hosts = {8}};
  const auto all = candidates(Op::all_reduce, shape, 16 << 20);
  const auto kept = affordable(all, Op::all_reduce, shape, 16 << 20, slow_to_send_much(), 8);
  EXPECT_EQ(count(all, Algorithm::tree), 3U);
  EXPECT_EQ(count(kept, Algorithm::tree), 1U) << "of few chunks it is slower by far than others";
  EXPECT_EQ(count(kept, Algorithm::ring), count(all, Algorithm::ring));
  EXPECT_FALSE(kept.front()) << "the engine's own";
  const auto no_plan = [](const auto& choice) { return choice && choice->kind == Choice::Kind::in_slices; };
  EXPECT_EQ(std::count_if(kept.begin(), kept.end(), no_plan), std::count_if(all.begin(), all.end(), no_plan));
}

TEST(Affordable, KnowsNothingOfUnevenHosts) {
  const GroupShape shape{.engine = "mpi", .hosts = {1, 3}};
  const auto all = candidates(Op::all_reduce, shape, 16 << 20);
  EXPECT_EQ(affordable(all, Op::all_reduce, shape, 16 << 20, slow_to_send_much(), 1).size(), all.size());
}

}  // namespace
}  // namespace tutti::plan
