#include "tutti/engine/planned.h"

#include <functional>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/engine/ring_links.h"
#include "tutti/engine/test_ranks.h"

namespace tutti::engine {
namespace {

using testing::HasSubstr;

TEST(Planned, WhatThereIsNoPlanForIsRefused) {
  Planned planned(Rank{0}, 3);
  EXPECT_THAT(planned.choose(Op::barrier, plan::Choice{}).error().message, HasSubstr("no plans for barrier"));
  EXPECT_THAT(planned.choose(Op::gather, plan::Choice{}).error().message, HasSubstr("no ring for gather"));
}

TEST(Planned, BlocksOfDifferentLengthsHaveNoPlan) {
  Planned planned(Rank{0}, 3);
  ASSERT_TRUE(planned.choose(Op::all_gather, plan::Choice{}));
  Card card{.op = Op::all_gather, .dtype = kernels::DType::float32, .bytes = 100};
  EXPECT_NE(planned.choice_for(card), nullptr);
  card.plain = false;
  EXPECT_EQ(planned.choice_for(card), nullptr);
}

TEST(Planned, ASmallHostHasFewerLeaders) {
  Planned planned(Rank{0}, 3);
  planned.set_hosts({{Rank{0}}, {Rank{1}, Rank{2}}});
  EXPECT_TRUE(planned.choose(Op::all_reduce, plan::Choices::parse("hybrid@2/4").value()).ok());
}

TEST(Planned, HybridsAreMadeOfWhatWasChosen) {
  Planned planned(Rank{0}, 4);
  planned.set_hosts({{Rank{0}, Rank{1}}, {Rank{2}, Rank{3}}});
  for (const auto* text : {"hybrid.ring.tree@2/4", "hybrid.direct.ring", "hybrid.tree,4Ki:hybrid.tree.direct/2"}) {
    EXPECT_TRUE(planned.choose(Op::all_reduce, plan::Choices::parse(text).value()).ok()) << text;
  }
  const plan::Choice wrong{.algorithm = plan::Algorithm::hybrid, .inside = plan::Algorithm::bruck};
  EXPECT_THAT(planned.choose(Op::all_reduce, wrong).error().message,
              HasSubstr("inside of a host there are direct, ring, tree, not bruck"));
  EXPECT_THAT(planned.choose(Op::broadcast, plan::Choices::parse("hybrid.ring").value()).error().message,
              HasSubstr("no hybrid for broadcast"));
}

/// Ranks of two hosts, dealt in turn, that add up by what was chosen; then each looks at what it sent to whom.
void add_up(const std::string& chosen, const std::function<void(int, const RingLinks&)>& look) {
  const std::vector<std::vector<Rank>> hosts{{Rank{0}, Rank{2}}, {Rank{1}, Rank{3}}};
  const auto layout = HubLayout::for_ranks(4);
  std::vector<std::byte> memory(layout.total_bytes() + 4096);
  auto* const aligned =
      reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 4095) / 4096 * 4096);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      Hub hub(aligned, layout, Rank{rank});
      RingLinks links(hub);
      Planned planned(Rank{rank}, 4);
      planned.set_hosts(hosts);
      const auto choice = plan::Choices::parse(chosen).value();
      ASSERT_TRUE(planned.choose(Op::all_reduce, choice).ok());
      auto grads = ramp(1003, rank);
      const Call call{
          .op = Op::all_reduce, .dtype = kernels::DType::float32, .in = {bytes_of(grads)}, .out = {writable(grads)}};
      const Doing doing{.card = make_card(call), .sequence = 1};
      ASSERT_TRUE(planned.run(call, *planned.choice_for(doing.card), links, doing, soon()).ok());
      EXPECT_EQ(grads, ramp_sum(1003, 4)) << chosen;
      look(rank, links);
    });
  }
}

/// Sums go around in another order than ranks are numbered, and are right.
TEST(Planned, NeighboursAreOnOneHost) {
  add_up("ring/2", [](int rank, const RingLinks& links) {
    for (int peer = 0; peer < 4; ++peer) {
      // To the other one of its host, or to the next host's first.
      EXPECT_EQ(links.sent()[static_cast<std::size_t>(peer)].messages != 0, peer == (rank < 2 ? rank + 2 : 3 - rank))
          << rank << " to " << peer;
    }
  });
}

TEST(Planned, HybridsAddUpWhateverTheyAreMadeOf) {
  for (const auto inside : plan::algorithms_inside_hosts()) {
    for (const auto between : plan::algorithms_between_hosts()) {
      add_up(fmt::format("hybrid.{}.{}@2/3", to_string(inside), to_string(between)),
             [](int rank, const RingLinks& links) {
               EXPECT_EQ(links.sent()[static_cast<std::size_t>(3 - rank)].messages, 0) << "no leader of the same part";
             });
    }
  }
}

}  // namespace
}  // namespace tutti::engine
