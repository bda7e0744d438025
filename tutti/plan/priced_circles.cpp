#include <algorithm>
#include <numeric>

#include "tutti/plan/priced_movements.h"

namespace tutti::plan {
namespace {

/// What one message of a ring costs, from a member to the next.
struct Hop {
  Spent spent;         // from one that has the chunk to the next that has it, but for the addition
  double send = 0;     // the sender's processor
  double receive = 0;  // the receiver's
  double line = 0;     // the busiest link of it, for this round
};

/// All hops of all teams in one round.
class Circles {
 public:
  Circles(const Rounds& rounds, const std::vector<Members>& teams, double bytes)
      : rounds_(rounds), fabric_(rounds.fabric()), crossing_(fabric_.links(), 0), workers_(fabric_.hosts(), 0) {
    for (const auto& team : teams) {
      for (std::size_t i = 0; i < team.size(); ++i) {
        ++workers_[fabric_.host_of(team[i])];
        const auto path = fabric_.path(team[i], team[(i + 1) % team.size()]);
        for (const auto link : path.crossed()) {
          ++crossing_[link];
        }
      }
    }
    for (const auto& team : teams) {
      auto& hops = hops_.emplace_back();
      for (std::size_t i = 0; i < team.size(); ++i) {
        hops.push_back(hop(team[i], team[(i + 1) % team.size()], bytes));
      }
    }
    const auto adding = combine_work(fabric_.network().processors, 2, bytes);
    const auto crowd = *std::max_element(workers_.begin(), workers_.end());
    addition_ = adding.seconds * rounds.crowding(adding, crowd);
  }

  const std::vector<std::vector<Hop>>& hops() const { return hops_; }
  double addition() const { return addition_; }

 private:
  Hop hop(Rank from, Rank to, double bytes) const {
    const auto path = fabric_.path(from, to);
    const auto& level = fabric_.network().levels[path.level];
    const auto sending = end_work(fabric_.network(), level, level.send, bytes);
    const auto taking = end_work(fabric_.network(), level, level.receive, bytes);
    Hop hop;
    hop.send = sending.seconds * rounds_.crowding(sending, workers_[fabric_.host_of(from)]);
    hop.receive = taking.seconds * rounds_.crowding(taking, workers_[fabric_.host_of(to)]);
    const auto alone = fabric_.alone(path);
    hop.line = alone > 0 ? bytes / alone : 0;
    hop.spent.transfer = hop.line;
    for (const auto link : path.crossed()) {
      if (const auto bandwidth = fabric_.bandwidth(link); bandwidth > 0) {
        hop.line = std::max(hop.line, bytes * crossing_[link] / bandwidth);
      }
    }
    hop.spent.sharing = hop.line - hop.spent.transfer;
    hop.spent.latency = level.latency;
    hop.spent.messages = hop.send + hop.receive;
    return hop;
  }

  const Rounds& rounds_;
  const Fabric& fabric_;
  std::vector<std::uint32_t> crossing_;
  std::vector<std::uint32_t> workers_;
  std::vector<std::vector<Hop>> hops_;  // by team
  double addition_ = 0;
};

/// The way of the chunk that takes longest: as many hops as the ring has but one, from wherever is worst; for each
/// half.
Spent longest_way(const std::vector<Hop>& hops, double addition, const RingWay& way) {
  const auto n = hops.size();
  Spent around;
  for (const auto& hop : hops) {
    around += hop.spent;
  }
  // All but one: the cheapest is left out. Of two halves it is the same one, where the sum is complete.
  const auto cheapest = std::min_element(hops.begin(), hops.end(),
                                         [](const Hop& a, const Hop& b) { return a.spent.total() < b.spent.total(); });
  around += cheapest->spent * -1;
  const double halves = (way.reduces ? 1 : 0) + (way.gathers ? 1 : 0);
  auto spent = around * halves;
  spent.reduction += way.reduces ? addition * static_cast<double>(n - 1) : 0;
  return spent;
}

/// What the busiest processor or link needs for one chunk of one round.
Spent busiest(const std::vector<Hop>& hops, double addition) {
  Spent most;
  for (std::size_t i = 0; i < hops.size(); ++i) {
    const auto before = (i + hops.size() - 1) % hops.size();
    const Spent processor{.messages = hops[i].send + hops[before].receive, .reduction = addition};
    const Spent line{.sharing = hops[i].line};
    most = processor.total() > most.total() ? processor : most;
    most = line.total() > most.total() ? line : most;
  }
  return most;
}

}  // namespace

void price_ring(Rounds& rounds, const std::vector<Members>& teams, const RingWay& way) {
  const Circles circles(rounds, teams, way.slice / way.chunks);
  Spent longest;
  std::size_t most = 1;
  for (const auto& hops : circles.hops()) {
    if (hops.size() < 2) {
      continue;
    }
    most = std::max(most, hops.size());
    const auto adding = busiest(hops, way.reduces ? circles.addition() : 0);
    const auto passing = busiest(hops, 0);
    const auto turns = static_cast<double>(hops.size() - 1) * way.chunks;
    auto chain = longest_way(hops, circles.addition(), way);
    chain += adding * (way.chunks - 1.0);
    // Or somebody is never idle: all chunks of all rounds go through it.
    auto busy = adding * (way.reduces ? turns : 0);
    busy += passing * (way.gathers ? turns : 0);
    const auto slowest = std::max_element(hops.begin(), hops.end(),
                                          [](const Hop& a, const Hop& b) { return a.spent.total() < b.spent.total(); });
    busy += {.latency = slowest->spent.latency, .messages = std::min(slowest->send, slowest->receive)};
    longest = chain.total() > longest.total() ? chain : longest;
    longest = busy.total() > longest.total() ? busy : longest;
  }
  const auto halves = (way.reduces ? 1 : 0) + (way.gathers ? 1 : 0);
  rounds.all_spend(longest, static_cast<double>((most - 1) * way.chunks) * halves);
}

namespace {

/// How many messages a rank exchanges with peers of each level, and the load of links, when all members talk to all.
class Everyone {
 public:
  Everyone(const Fabric& fabric, const std::vector<Members>& teams) : fabric_(fabric), load_(fabric.links(), 0) {
    for (const auto& team : teams) {
      count(team);
    }
  }

  const std::vector<std::vector<double>>& peers() const { return peers_; }  // by member, by level
  double longest_line(double bytes) const {
    double longest = 0;
    for (std::uint32_t link = 0; link < load_.size(); ++link) {
      longest = std::max(longest, fabric_.bandwidth(link) > 0 ? load_[link] * bytes / fabric_.bandwidth(link) : 0);
    }
    return longest;
  }

 private:
  void count(const Members& team) {
    const auto levels = fabric_.network().levels.size();
    const auto first = peers_.size();
    peers_.resize(first + team.size(), std::vector<double>(levels, 0));
    std::vector<double> nearer(team.size(), 1);  // those counted already, and itself
    for (std::size_t level = 0; level < levels; ++level) {
      std::vector<double> members(fabric_.groups(level), 0);
      for (const auto rank : team) {
        ++members[fabric_.group_of(rank, level)];
      }
      for (std::size_t i = 0; i < team.size(); ++i) {
        const auto here = members[fabric_.group_of(team[i], level)];
        peers_[first + i][level] = here - nearer[i];
        nearer[i] = here;
      }
      if (level + 1 < levels) {
        load(level, members, static_cast<double>(team.size()));
      }
    }
  }

  void load(std::size_t level, const std::vector<double>& members, double all) {
    for (std::size_t group = 0; group < members.size(); ++group) {
      if (!fabric_.is_paired(level)) {
        const auto leaving = members[group] * (all - members[group]);
        load_[fabric_.link_up(level, group)] += leaving;
        load_[fabric_.link_down(level, group)] += leaving;
        continue;
      }
      for (std::size_t other = 0; other < members.size(); ++other) {
        if (other != group) {
          load_[fabric_.link_between(level, group, other)] += members[group] * members[other];
        }
      }
    }
  }

  const Fabric& fabric_;
  std::vector<double> load_;
  std::vector<std::vector<double>> peers_;
};

}  // namespace

void price_everyone(Rounds& rounds, const std::vector<Members>& teams, double bytes, Shares shares) {
  const auto& fabric = rounds.fabric();
  const auto& network = fabric.network();
  const auto& levels = network.levels;
  const Everyone everyone(fabric, teams);
  const auto crowd = static_cast<double>(fabric.ranks_of_host());
  double most_sending = 0;
  double most_working = 0;
  double most_messages = 0;
  std::size_t farthest = 0;
  for (const auto& peers : everyone.peers()) {
    double sending = 0;
    double taking = 0;
    for (std::size_t level = 0; level < levels.size(); ++level) {
      const auto send = end_work(network, levels[level], levels[level].send, bytes);
      const auto take = end_work(network, levels[level], levels[level].receive, bytes);
      sending += shares.sends * peers[level] * send.seconds * rounds.crowding(send, crowd);
      taking += shares.takes * peers[level] * take.seconds * rounds.crowding(take, crowd);
      farthest = peers[level] > 0 ? std::max(farthest, level) : farthest;
    }
    most_sending = std::max(most_sending, sending);
    most_working = std::max(most_working, sending + taking);
    most_messages = std::max(most_messages, shares.sends * std::accumulate(peers.begin(), peers.end(), 0.0));
  }
  const auto& level = levels[farthest];
  const auto line = everyone.longest_line(bytes) * std::min(shares.sends, shares.takes);
  const auto last = end_work(network, level, level.receive, bytes).seconds;
  // Whoever has most to do is never idle; or the last message leaves it late; or the busiest link is never idle.
  const Spent working{.messages = most_working};
  const Spent late{.latency = level.latency, .messages = most_sending + last};
  const Spent crossing{.latency = level.latency,
                       .sharing = line,
                       .messages = end_work(network, level, level.send, bytes).seconds + last};
  rounds.all_spend(
      std::max({working, late, crossing}, [](const Spent& a, const Spent& b) { return a.total() < b.total(); }),
      most_messages, {.processor = most_working, .link = line});
}

}  // namespace tutti::plan
