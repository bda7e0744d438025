#include "tutti/plan/prove.h"

#include <map>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/plan/algorithms.h"
#include "tutti/plan/builder.h"
#include "tutti/plan/rehearse.h"

namespace tutti::plan {
namespace {

using testing::HasSubstr;

/// Two ranks exchange what they have and add it.
Plan exchange() {
  Plan plan{.shape = {.op = Op::all_reduce, .ranks = 2}, .programs = {}};
  for (const auto rank : {Rank{0}, Rank{1}}) {
    const Rank peer{1 - to_int(rank)};
    Builder builder(plan.shape, rank);
    const auto incoming = builder.scratch(1);
    builder.send(peer, builder.input());
    builder.receive(peer, incoming);
    if (rank == Rank{0}) {  // both in the same order
      builder.combine(builder.output(), {builder.input(), incoming});
    } else {
      builder.combine(builder.output(), {incoming, builder.input()});
    }
    plan.programs.push_back(std::move(builder).take());
  }
  return plan;
}

void wait_for(Program& program, std::uint32_t step, std::vector<std::uint32_t> before) {
  program.steps[step].after = {static_cast<std::uint32_t>(program.after.size()),
                               static_cast<std::uint32_t>(before.size())};
  program.after.insert(program.after.end(), before.begin(), before.end());
}

testing::AssertionResult is_flawed(const Plan& plan, Flaw::Kind kind, Rank rank, const std::string& says) {
  const auto flaw = prove(plan);
  if (!flaw) {
    return testing::AssertionFailure() << "no flaw was found";
  }
  if (flaw->kind != kind || flaw->rank != rank || flaw->sentence.find(says) == std::string::npos) {
    return testing::AssertionFailure() << to_string(flaw->kind) << " on rank " << to_int(flaw->rank) << ": "
                                       << flaw->sentence;
  }
  return testing::AssertionSuccess();
}

TEST(Prove, AcceptsWhatIsRight) { EXPECT_FALSE(prove(exchange())); }

TEST(Prove, FindsAMessageThatNobodyReceives) {
  auto plan = exchange();
  plan.programs[1].steps.erase(plan.programs[1].steps.begin() + 1);
  wait_for(plan.programs[1], 1, {0});
  EXPECT_TRUE(is_flawed(plan, Flaw::Kind::unmatched, Rank{0}, "step 0: send input 0 to rank 1: nobody receives it"));
}

TEST(Prove, FindsStepsThatWaitForEachOther) {
  auto plan = exchange();
  // Each receives only after its own message was received: fine if messages were buffered.
  for (auto& program : plan.programs) {
    wait_for(program, 1, {0});
  }
  EXPECT_TRUE(is_flawed(plan, Flaw::Kind::deadlock, Rank{0},
                        "rank 0, step 0: send input 0 to rank 1; which waits for rank 1, step 0"));
}

TEST(Prove, FindsAStepThatDoesNotWait) {
  auto plan = exchange();
  wait_for(plan.programs[1], 2, {0});  // adds what may not have come
  EXPECT_TRUE(is_flawed(plan, Flaw::Kind::race, Rank{1}, "it does not wait for rank 1, step 1"));
}

TEST(Prove, KnowsThatInputAndOutputMayBeTheSameMemory) {
  auto plan = exchange();
  wait_for(plan.programs[0], 2, {1});  // writes the output while the input may still be on its way
  EXPECT_TRUE(is_flawed(plan, Flaw::Kind::race, Rank{0}, "both touch output 0"));
}

TEST(Prove, CountsContributions) {
  auto plan = exchange();
  plan.programs[1].sources[1] = plan.programs[1].sources[0];
  EXPECT_TRUE(is_flawed(plan, Flaw::Kind::result, Rank{1}, "output 0 has what rank 0 gave 2 times instead of once"));
}

/// Everyone doubles what it gave, so many times, and adds it once more.
Plan doubled(int times) {
  Plan plan{.shape = {.op = Op::all_reduce, .ranks = 1}, .programs = {}};
  Builder builder(plan.shape, Rank{0});
  const auto sum = builder.scratch(1);
  builder.copy(sum, builder.input());
  for (int i = 0; i < times; ++i) {
    builder.combine(sum, {sum, sum});
  }
  builder.combine(builder.output(), {sum, builder.input()});
  plan.programs.push_back(std::move(builder).take());
  return plan;
}

TEST(Prove, CountsContributionsWithoutEnd) {
  EXPECT_TRUE(is_flawed(doubled(5), Flaw::Kind::result, Rank{0}, "what rank 0 gave 33 times instead of once"));
  for (const int times : {31, 32, 33, 64, 200}) {
    EXPECT_TRUE(is_flawed(doubled(times), Flaw::Kind::result, Rank{0}, "times instead of once")) << times;
  }
}

TEST(Prove, WantsTheSameBitsEverywhere) {
  // Three ranks send everything to everybody, but one adds in an order of its own.
  auto plan = build({.algorithm = Algorithm::one_shot, .ranks = 3}).value();
  std::swap(plan.programs[2].sources[0], plan.programs[2].sources[2]);
  EXPECT_TRUE(is_flawed(plan, Flaw::Kind::result, Rank{2}, "another order than on rank 0"));
}

TEST(Prove, FindsWhatIsNotThere) {
  auto plan = exchange();
  plan.programs[0].steps[1].span.begin = 7;
  EXPECT_TRUE(
      is_flawed(plan, Flaw::Kind::malformed, Rank{0}, "receive scratch 7 from rank 1: there are no such pieces"));
}

// Damages drawn by lot.

using Lot = std::mt19937_64;

std::size_t draw(Lot& lot, std::size_t below) { return static_cast<std::size_t>(lot() % below); }

void drop(Program& program, std::uint32_t step) {
  Program rest{.steps = {}, .sources = program.sources, .after = {}, .scratch_pieces = program.scratch_pieces};
  for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
    if (i == step) {
      continue;
    }
    auto kept = program.steps[i];
    const auto begin = static_cast<std::uint32_t>(rest.after.size());
    for (const auto before : program.after_of(program.steps[i])) {
      if (before != step) {
        rest.after.push_back(before > step ? before - 1 : before);
      }
    }
    kept.after = {begin, static_cast<std::uint32_t>(rest.after.size()) - begin};
    rest.steps.push_back(kept);
  }
  program = std::move(rest);
}

/// What is in the place of two neighbours, who keep what they wait for but where that is the other.
void swap_with_next(Program& program, std::uint32_t step) {
  std::vector<std::vector<std::uint32_t>> after;
  for (const auto& each : program.steps) {
    const auto before = program.after_of(each);
    after.emplace_back(before.begin(), before.end());
  }
  std::swap(program.steps[step], program.steps[step + 1]);
  std::swap(after[step], after[step + 1]);
  std::erase(after[step], step);
  program.after.clear();
  for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
    for (auto& before : after[i]) {
      before = i > step + 1 && before == step ? step + 1 : i > step + 1 && before == step + 1 ? step : before;
    }
    wait_for(program, i, after[i]);
  }
}

std::string damage(Plan& plan, Lot& lot) {
  auto& program = plan.programs[draw(lot, plan.programs.size())];
  const auto number = static_cast<std::uint32_t>(draw(lot, program.steps.size()));
  auto& step = program.steps[number];
  const auto other = [&](std::size_t value, std::size_t below) {
    return below < 2 ? value : (value + 1 + draw(lot, below - 1)) % below;
  };
  switch (draw(lot, 8)) {
    case 0: drop(program, number); return "dropped";
    case 1: {
      auto twin = step;
      program.steps.push_back(twin);
      return "doubled";
    }
    case 2:
      if (number + 1 < program.steps.size()) {
        swap_with_next(program, number);
      }
      return "swapped";
    case 3:
      step.peer = to_rank(other(to_index(step.peer) % plan.programs.size(), plan.programs.size()));
      return "re-targeted";
    case 4: step.span.count = 1 + static_cast<std::uint32_t>(draw(lot, 2 * step.span.count)); return "resized";
    case 5: step.span.begin = static_cast<std::uint32_t>(draw(lot, 2 * step.span.begin + 3)); return "moved";
    case 6: step.after.count = step.after.count == 0 ? 0 : step.after.count - 1; return "does not wait";
    default:
      if (!program.sources.empty()) {
        auto& source = program.sources[draw(lot, program.sources.size())];
        source.begin = static_cast<std::uint32_t>(draw(lot, 2 * source.begin + 2));
      }
      return "takes something else";
  }
}

/// Whether a rehearsal may be run at all: it looks at no bounds.
bool is_well_formed(const Plan& plan) {
  const auto flaw = prove(plan);
  return !flaw || flaw->kind != Flaw::Kind::malformed;
}

TEST(Prove, FindsEveryDamageThatMatters) {
  Lot lot(20261115);
  int matter = 0;
  int found = 0;
  std::map<Flaw::Kind, int> unseen;  // flaws that no rehearsal showed
  for (int i = 0; i < 1000; ++i) {
    constexpr std::array kOps{Op::all_reduce, Op::reduce_scatter, Op::all_gather, Op::broadcast,
                              Op::reduce,     Op::all_to_all,     Op::gather,     Op::scatter};
    Request request{.op = i % 2 == 0 ? Op::all_reduce : kOps[draw(lot, kOps.size())]};
    const auto choices = algorithms_for(request.op);
    request.algorithm = choices[draw(lot, choices.size())];
    request.ranks = 2 + static_cast<int>(draw(lot, 6));
    request.root = Rank{static_cast<int>(draw(lot, static_cast<std::size_t>(request.ranks)))};
    request.chunks = 1 + static_cast<unsigned>(draw(lot, takes_chunks(request.algorithm, request.op) ? 3 : 1));
    request.hosts = {{}, {}};
    for (int rank = 0; rank < request.ranks; ++rank) {
      request.hosts[static_cast<std::size_t>(rank) % 2].push_back(Rank{rank});
    }
    auto plan = build(request).value();
    const auto what = damage(plan, lot);
    const auto flaw = prove(plan);
    found += flaw ? 1 : 0;
    std::optional<std::string> wrong;
    for (unsigned seed = 0; seed < 40 && is_well_formed(plan) && !wrong; ++seed) {
      wrong = rehearse(plan, {.seed = seed, .buffered = seed % 2 == 1, .same_memory = seed % 4 >= 2});
    }
    matter += wrong || !is_well_formed(plan) ? 1 : 0;
    if (flaw && !wrong && is_well_formed(plan)) {
      ++unseen[flaw->kind];
      // A plan that always blocks, or always ends with something else, does so in every order.
      EXPECT_TRUE(flaw->kind == Flaw::Kind::race || flaw->kind == Flaw::Kind::unmatched)
          << to_string(request.algorithm) << " " << to_string(request.op) << ", a step " << what
          << ": no rehearsal shows " << flaw->sentence;
    }
    EXPECT_TRUE(flaw || !wrong) << to_string(request.algorithm) << " " << to_string(request.op) << " of "
                                << request.ranks << " ranks, a step " << what << ": proved, but " << *wrong;
  }
  EXPECT_GT(matter, 500) << "the damages are too tame to show anything";
  EXPECT_GE(found, matter);
  // Not false, but not shown: a race harms in few orders, or in none where both write the same; and a rehearsal does
  // not mind in which length a message is received. Were there many, the proof would refuse plans that run well.
  const auto unseen_races = unseen[Flaw::Kind::race];
  const auto unseen_lengths = unseen[Flaw::Kind::unmatched];
  EXPECT_LT(unseen_races, found / 20);
  EXPECT_LT(unseen_lengths, found / 20);
  fmt::print("{} of 1,000 damages matter, {} are found, of which rehearsals show all but {} races and {} lengths\n",
             matter, found, unseen_races, unseen_lengths);
  RecordProperty("unseen_races", unseen_races);
  RecordProperty("unseen_lengths", unseen_lengths);
  RecordProperty("found", found);
  RecordProperty("matter", matter);
}

}  // namespace
}  // namespace tutti::plan
