#include "tutti/plan/priced_movements.h"

#include <algorithm>
#include <bit>
#include <map>

namespace tutti::plan {
namespace {

/// Adds what came, where ranks do that at the same time.
void combine_at_receivers(Rounds& rounds, const std::vector<Rounds::Message>& messages) {
  std::map<std::pair<std::uint32_t, double>, std::vector<Rank>> alike;
  for (std::size_t i = 0; i < messages.size();) {
    auto next = i;
    while (next < messages.size() && messages[next].to == messages[i].to) {
      ++next;  // children of one parent stand beside each other
    }
    if (messages[i].bytes > 0) {
      alike[{static_cast<std::uint32_t>(next - i + 1), messages[i].bytes}].push_back(messages[i].to);
    }
    i = next;
  }
  for (const auto& [what, ranks] : alike) {
    rounds.combine(ranks, what.first, what.second);
  }
}

/// A power of two of a team's members work, see `all_reduce.cpp`: each other one hands over to the one before it.
struct FoldedTeam {
  const Members& members;
  std::size_t active;
  std::size_t surplus;

  explicit FoldedTeam(const Members& team)
      : members(team), active(std::bit_floor(team.size())), surplus(team.size() - active) {}

  Rank at(std::size_t which) const { return members[which < surplus ? 2 * which : which + surplus]; }

  void hand_over(std::vector<Rounds::Message>& messages, double bytes, bool back) const {
    for (std::size_t i = 0; i < surplus; ++i) {
      const auto works = members[2 * i];
      const auto other = members[2 * i + 1];
      messages.push_back(back ? Rounds::Message{works, other, bytes} : Rounds::Message{other, works, bytes});
    }
  }
};

template <class Each>
void round_of(Rounds& rounds, const std::vector<Members>& teams, bool adds, const Each& each) {
  std::vector<Rounds::Message> messages;
  for (const auto& members : teams) {
    each(FoldedTeam(members), messages);
  }
  rounds.exchange(messages);
  if (adds) {
    combine_at_receivers(rounds, messages);
  }
}

void fold(Rounds& rounds, const std::vector<Members>& teams, double bytes, bool back) {
  round_of(rounds, teams, !back, [&](const FoldedTeam& team, std::vector<Rounds::Message>& messages) {
    team.hand_over(messages, bytes, back);
  });
}

/// Everyone who works exchanges with the one whose number differs in that bit.
template <class Bytes>
void exchange_bit(Rounds& rounds, const std::vector<Members>& teams, std::size_t bit, bool adds,
                  const Bytes& bytes_from) {
  round_of(rounds, teams, adds, [&](const FoldedTeam& team, std::vector<Rounds::Message>& messages) {
    for (std::size_t place = 0; bit < team.active && place < team.active; ++place) {
      messages.push_back({team.at(place), team.at(place ^ bit), bytes_from(place)});
    }
  });
}

std::size_t most_active(const std::vector<Members>& teams) {
  std::size_t most = 1;
  for (const auto& members : teams) {
    most = std::max(most, std::bit_floor(members.size()));
  }
  return most;
}

}  // namespace

void Forest::add(const Members& team, const BranchOf& branch_of, double bytes, bool weighted) {
  std::vector<std::pair<std::size_t, std::size_t>> above;  // parent and place, of one level
  bytes_ = bytes;
  std::vector<Branch> branches;
  std::size_t root = 0;
  for (std::size_t place = 0; place < team.size(); ++place) {
    branches.push_back(branch_of(team.size(), place));
    root = branches.back().parent ? root : place;
  }
  std::vector<std::size_t> places{root};
  for (std::size_t depth = 0; !places.empty(); ++depth) {
    std::vector<std::size_t> below;
    for (const auto place : places) {
      for (const auto child : branches[place].children) {
        levels_.resize(std::max(levels_.size(), depth + 1));
        const auto weight = weighted ? static_cast<double>(binomial_weight(team.size(), child)) : 1;
        levels_[depth].push_back({team[child], team[place], weight * bytes});
        below.push_back(child);
      }
    }
    places = std::move(below);
  }
}

void Forest::reduce(Rounds& rounds, bool adding) const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    rounds.exchange(*level);
    if (adding) {
      combine_at_receivers(rounds, *level);
    }
  }
}

void Forest::broadcast(Rounds& rounds) const {
  for (auto level : levels_) {
    for (auto& message : level) {
      std::swap(message.from, message.to);
    }
    rounds.exchange(level);
  }
}

void price_doubling(Rounds& rounds, const std::vector<Members>& teams, double bytes) {
  fold(rounds, teams, bytes, false);
  for (std::size_t bit = 1; bit < most_active(teams); bit *= 2) {
    exchange_bit(rounds, teams, bit, true, [bytes](std::size_t) { return bytes; });
  }
  fold(rounds, teams, bytes, true);
}

void price_halving_doubling(Rounds& rounds, const std::vector<Members>& teams, double unit, double bytes) {
  // The last units may be short, or nothing.
  const auto range = [&](std::size_t begin, std::size_t count) {
    const auto first = std::min(static_cast<double>(begin) * unit, bytes);
    return std::min(static_cast<double>(begin + count) * unit, bytes) - first;
  };
  fold(rounds, teams, bytes, false);
  for (auto half = most_active(teams) / 2; half > 0; half /= 2) {
    exchange_bit(rounds, teams, half, true, [&](std::size_t place) {
      return range((place & ~(2 * half - 1)) + ((place & half) == 0 ? half : 0), half);
    });
  }
  for (std::size_t half = 1; half < most_active(teams); half *= 2) {
    exchange_bit(rounds, teams, half, false, [&](std::size_t place) { return range(place & ~(half - 1), half); });
  }
  fold(rounds, teams, bytes, true);
}

}  // namespace tutti::plan
