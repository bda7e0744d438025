#include "bench/tune.h"

#include <algorithm>
#include <ctime>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "bench/contest.h"
#include "tutti/base/bytes.h"
#include "tutti/comm/tuned.h"
#include "tutti/plan/affordable.h"
#include "tutti/plan/known_network.h"
#include "tutti/plan/network_json.h"

namespace bench {
namespace {

using tutti::plan::Choices;
using tutti::plan::Tried;
using tutti::plan::TriedSize;

class Tuner {
 public:
  Tuner(const tutti::Group& group, const TuneOptions& options)
      : options_(options),
        network_(known_network(options, group)),
        world_(group),
        group_(*group.subgroup(everybody(group))) {}

  Grid tune(const std::string& op, const std::string& memory) {
    Grid grid{.op = op, .memory = memory, .shape = group_.shape()};
    const Trials trials(group_, options_.dtype, memory == "symmetric", false);
    for (const auto size : options_.sizes) {
      const auto trial = trials.make(op, bytes_for(op, size));
      if (grid.sizes.empty() || grid.sizes.back().bytes < trial.block) {
        grid.sizes.push_back(try_all(op, trial));
        show_progress(op, memory, trial.block);
      }
    }
    choose_and_check(grid, trials);
    group_.choose(op, "own");
    return grid;
  }

 private:
  static std::string chosen_by(const Choices& choices, std::size_t bytes) {
    const auto* const choice = choices.find(bytes);
    return choice == nullptr ? "own" : choice->text();
  }

  static constexpr int kSure = 15;  // rounds that tell who is quicker among those that are close

  static std::vector<tutti::Rank> everybody(const tutti::Group& group) {
    std::vector<tutti::Rank> ranks;
    for (int rank = 0; rank < group.size(); ++rank) {
      ranks.push_back(tutti::Rank{rank});
    }
    return ranks;
  }

  std::size_t bytes_for(const std::string& op, std::size_t block) const {
    return op == "all_reduce" || op == "reduce" || op == "broadcast" ? block : block * world_.ranks();
  }

  TriedSize try_all(const std::string& op, const CollectiveTrial& trial) {
    Contest contest(world_, group_, op, trial);
    std::vector<Contender> all;
    std::vector<std::optional<tutti::plan::Choice>> choices;
    for (const auto& choice : worth_trying(op, trial.block)) {
      choices.push_back(choice);
      all.emplace_back(tutti::plan::text_of(choice));
    }
    constexpr double kHopeless = 4;  // times the quickest
    auto left = contest.enter_all(all, kHopeless);
    contest.compete(left, options_.seconds_per_size / 2, 1.5, 0);
    contest.compete(left, options_.seconds_per_size / 2, 1.1, kSure);
    TriedSize tried{.bytes = trial.block, .tried = {}};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool to_the_end = std::find(left.begin(), left.end(), &all[i]) != left.end();
      tried.tried.push_back({.choice = choices[i], .seconds = all[i].time() * 1e-6, .to_the_end = to_the_end});
    }
    return tried;
  }

  /// Without plans that are hopeless by what --links found, where it did; by rank 0's account.
  std::vector<std::optional<tutti::plan::Choice>> worth_trying(const std::string& op, std::size_t bytes) {
    constexpr double kHopeless = 5;  // times the quickest plan: networks are not that wrong
    const auto shape = tutti::plan::GroupShape::parse(group_.shape());
    const auto plan_op = tutti::plan::parse_op(op).value();
    auto all = candidates(plan_op, shape, bytes);
    std::vector<double> kept(all.size(), 1);
    if (world_.rank() == 0 && network_) {
      const auto some = affordable(all, plan_op, shape, bytes, *network_, kHopeless);
      for (std::size_t i = 0, next = 0; i < all.size(); ++i) {
        const bool there = next < some.size() && text_of(some[next]) == text_of(all[i]);
        next += there ? 1 : 0;
        kept[i] = there ? 1 : 0;
      }
    }
    std::vector<std::optional<tutti::plan::Choice>> left;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (world_.agree(kept[i]) != 0) {
        left.push_back(all[i]);
      }
    }
    return left;
  }

  /// Chooses, and times what was chosen beside the quickest once more. Where another one is ahead then, that look
  /// counts, and there is another choice: not for ever, since what is close changes places from look to look. In the
  /// end it is what was least behind.
  void choose_and_check(Grid& grid, const Trials& trials) {
    constexpr int kLooks = 4;
    std::vector<Check> last(grid.sizes.size());
    grid.checks.assign(grid.sizes.size(), Check{.behind = 1e9});
    for (int look = 0; look < kLooks; ++look) {
      grid.choices = tutti::plan::choose(grid.sizes);
      bool any = false;
      for (std::size_t i = 0; i < grid.sizes.size(); ++i) {
        auto& size = grid.sizes[i];
        if (last[i].chosen != chosen_by(grid.choices, size.bytes)) {
          const auto trial = trials.make(grid.op, bytes_for(grid.op, size.bytes));
          last[i] = look_again(grid.op, grid.choices, trial, size);
          grid.checks[i] = last[i].behind < grid.checks[i].behind ? last[i] : grid.checks[i];
          any = true;
        }
      }
      if (!any) {
        break;
      }
    }
    for (std::size_t i = 0; i < grid.sizes.size(); ++i) {
      for (auto& tried : grid.sizes[i].tried) {
        tried.to_the_end = tutti::plan::text_of(tried.choice) == grid.checks[i].chosen;
      }
    }
    grid.choices = tutti::plan::choose(grid.sizes);
  }

  /// What was chosen, as it will be used, beside the quickest ones, in turns. If one of them is ahead, these times are
  /// what counts of that size.
  Check look_again(const std::string& op, const Choices& choices, const CollectiveTrial& trial, TriedSize& size) {
    constexpr std::size_t kBeside = 4;
    constexpr double kAny = 1e9;  // nobody drops out
    auto others = size.tried;
    std::sort(others.begin(), others.end(), [](const Tried& a, const Tried& b) {
      return std::pair(!a.to_the_end, a.seconds) < std::pair(!b.to_the_end, b.seconds);
    });
    others.resize(std::min(others.size(), kBeside));
    std::vector<Contender> all;
    all.emplace_back(choices.text());
    for (const auto& other : others) {
      all.emplace_back(tutti::plan::text_of(other.choice));
    }
    Contest contest(world_, group_, op, trial);
    auto turns = contest.enter_all(all, kAny);
    contest.compete(turns, options_.seconds_per_size, kAny, kSure);
    std::erase(turns, &all[0]);
    const auto* const best = *Contest::quickest(turns);
    Check check{.chosen = chosen_by(choices, size.bytes),
                .seconds = all[0].time() * 1e-6,
                .best = best->choices,
                .best_seconds = best->time() * 1e-6};
    for (const auto* const each : turns) {
      if (each->choices != check.chosen) {  // nothing is behind itself: those differ by what timing does
        check.behind = std::max(check.behind, ratio(all[0], *each));
      }
    }
    constexpr double kAlike = 1.03;
    if (check.behind > kAlike) {
      count_this_look(all, check.chosen, size);
    }
    return check;
  }

  /// Those that took turns just now are who there is to choose from.
  static void count_this_look(const std::vector<Contender>& all, const std::string& chosen, TriedSize& size) {
    for (auto& tried : size.tried) {
      const auto name = tutti::plan::text_of(tried.choice);
      const auto found =
          std::find_if(all.begin() + 1, all.end(), [&](const auto& each) { return each.choices == name; });
      tried.to_the_end = found != all.end() || name == chosen;
      if (tried.to_the_end) {
        tried.seconds = all[0].time() * 1e-6 / (name == chosen ? 1 : ratio(all[0], *found));
      }
    }
  }

  void show_progress(const std::string& op, const std::string& memory, std::size_t bytes) const {
    if (world_.rank() == 0) {
      std::fputs(fmt::format("tuning {} of {} bytes, {} memory\n", op, bytes, memory).c_str(), stderr);
    }
  }

  static std::optional<tutti::plan::Network> known_network(const TuneOptions& options, const tutti::Group& group) {
    const bool several = tutti::plan::GroupShape::parse(group.shape()).hosts.size() > 1;
    const auto file = tutti::plan::network_file(options.file, tutti::this_machine(), several);
    auto network = tutti::plan::read_network(file);
    return network ? std::optional(std::move(network).value()) : std::nullopt;
  }

  const TuneOptions& options_;
  std::optional<tutti::plan::Network> network_;
  GroupWorld world_;
  tutti::Group group_;  // under test: choosing for it changes nothing for the world's
};

std::string today() {
  const auto now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

/// What is kept is more than was found, where other sizes had been timed before.
void tell_what_stayed(const tutti::plan::Tuned& found, const tutti::plan::Tuning& kept) {
  const auto* const choices = kept.find(found.machine, found.shape, found.op, found.memory);
  if (choices != nullptr && *choices != found.choices) {
    std::fputs(
        fmt::format("{}, {} memory: only blocks of {} to {} bytes were timed now; what was found before stays for "
                    "others: {}\n",
                    tutti::plan::to_string(found.op), tutti::plan::to_string(found.memory),
                    tutti::spell_bytes(found.timed.smallest), tutti::spell_bytes(found.timed.largest), choices->text())
            .c_str(),
        stderr);
  }
}

/// Whether what will be found can be kept, which the first rank finds out: all return the same, before they time for
/// minutes.
bool can_keep(const tutti::Group& group, const TuneOptions& options) {
  GroupWorld world(group);
  tutti::Status good;
  if (world.rank() == 0 && !options.file.empty()) {
    good = tutti::plan::can_add_to_tuning(options.file);
  }
  if (!good) {
    std::fputs(fmt::format("bench: {}\n", good.error().message).c_str(), stderr);
  }
  return world.agree(good ? 1 : 0) != 0;
}

/// Keeps what was found.
int keep(const std::vector<Grid>& grids, const TuneOptions& options) {
  std::vector<tutti::plan::Tuned> found;
  for (const auto& grid : grids) {
    found.push_back(
        {.machine = tutti::this_machine(),
         .shape = grid.shape,
         .op = tutti::plan::parse_op(grid.op).value(),
         .memory = grid.memory == "symmetric" ? tutti::plan::Memory::symmetric : tutti::plan::Memory::ordinary,
         .choices = grid.choices,
         .when = today(),
         .timed = {.smallest = grid.sizes.front().bytes, .largest = grid.sizes.back().bytes}});
  }
  if (options.file.empty()) {
    return 0;
  }
  const auto kept = tutti::plan::add_to_tuning(options.file, found);
  if (!kept) {
    std::fputs(fmt::format("bench: {}\n", kept.error().message).c_str(), stderr);
    return 1;
  }
  for (const auto& each : found) {
    tell_what_stayed(each, kept.value());
  }
  if (!options.json) {
    fmt::print("kept in {} for {} on {}\n", options.file, grids.front().shape, found.front().machine);
  }
  return 0;
}

}  // namespace

double Grid::worst() const {
  return std::max_element(checks.begin(), checks.end(),
                          [](const Check& a, const Check& b) { return a.behind < b.behind; })
      ->behind;
}

int tune(const tutti::Group& group, const TuneOptions& options) {
  if (group.shape().empty() || group.size() < 2) {
    fail("there is nothing to tune in a group of one rank, or of another's backend");
  }
  if (!can_keep(group, options)) {
    return 1;
  }
  Tuner tuner(group, options);
  std::vector<Grid> grids;
  for (const auto& op : options.ops) {
    for (const auto& memory : options.memories) {
      grids.push_back(tuner.tune(op, memory));
      if (group.rank() == tutti::Rank{0} && !options.json) {
        fmt::print("{}\n", to_text(grids.back()));
        std::fflush(stdout);
      }
    }
  }
  if (group.rank() != tutti::Rank{0}) {
    return 0;
  }
  if (options.json) {
    fmt::print("{}\n", to_json(grids));
  }
  return keep(grids, options);
}

}  // namespace bench
