#include "tutti/plan/events.h"

#include <algorithm>
#include <utility>

namespace tutti::plan {
namespace {

std::optional<std::uint32_t> unless(std::uint32_t value, std::uint32_t none) {
  return value == none ? std::nullopt : std::optional(value);
}

}  // namespace

Events::Events(const Plan& plan) {
  std::uint32_t total = 0;
  for (const auto& program : plan.programs) {
    first_.push_back(total);
    total += static_cast<std::uint32_t>(program.steps.size());
  }
  first_.push_back(total);
  other_.assign(total, kNone);
  earlier_.assign(total, kNone);
  order_channels(plan);
  match_ends(plan);
}

void Events::order_channels(const Plan& plan) {
  const auto ranks = plan.programs.size();
  std::vector<std::uint32_t> last_sent(ranks, kNone);
  std::vector<std::uint32_t> last_received(ranks, kNone);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto& steps = plan.programs[rank].steps;
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind != Step::Kind::combine && to_index(steps[i].peer) < ranks) {
        auto& last = (steps[i].kind == Step::Kind::send ? last_sent : last_received)[to_index(steps[i].peer)];
        earlier_[first_[rank] + i] = last;
        last = first_[rank] + i;
      }
    }
    for (const auto& step : steps) {
      if (step.kind != Step::Kind::combine && to_index(step.peer) < ranks) {
        last_sent[to_index(step.peer)] = kNone;
        last_received[to_index(step.peer)] = kNone;
      }
    }
  }
}

void Events::match_ends(const Plan& plan) {
  // What is sent to each rank, by sender, since senders are gone through in order; what it receives is put in that
  // order.
  const auto ranks = plan.programs.size();
  using Message = std::pair<std::size_t, std::uint32_t>;  // the peer, and this end
  std::vector<std::vector<Message>> sent(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto& steps = plan.programs[rank].steps;
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind == Step::Kind::send && to_index(steps[i].peer) < ranks) {
        sent[to_index(steps[i].peer)].emplace_back(rank, first_[rank] + i);
      }
    }
  }
  std::vector<Message> received;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    received.clear();
    const auto& steps = plan.programs[rank].steps;
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind == Step::Kind::receive) {
        received.emplace_back(to_index(steps[i].peer), first_[rank] + i);
      }
    }
    std::sort(received.begin(), received.end());
    auto end = sent[rank].begin();
    for (const auto& [peer, event] : received) {
      while (end != sent[rank].end() && end->first < peer) {
        ++end;
      }
      if (end != sent[rank].end() && end->first == peer) {
        other_[event] = end->second;
        other_[end->second] = event;
        ++end;
      }
    }
  }
}

Rank Events::rank(std::uint32_t event) const {
  const auto after = std::upper_bound(first_.begin(), first_.end(), event);
  return to_rank(static_cast<std::size_t>(after - first_.begin()) - 1);
}

std::optional<std::uint32_t> Events::other_end(std::uint32_t event) const { return unless(other_[event], kNone); }

std::optional<std::uint32_t> Events::earlier_message(std::uint32_t event) const {
  return unless(earlier_[event], kNone);
}

std::vector<std::uint32_t> order_events(const Plan& plan, const Events& events, bool buffered) {
  // An event may happen when everything that it waits for has. The two ends of an unbuffered message happen at once:
  // each end also waits for what the other waits for.
  const auto count = events.size();
  std::vector<std::uint32_t> waits(count, 0);
  std::vector<std::vector<std::uint32_t>> wakes(count);
  const auto add = [&](std::uint32_t before, std::uint32_t after) {
    wakes[before].push_back(after);
    ++waits[after];
  };
  for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
    const auto& program = plan.programs[rank];
    for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
      const auto& step = program.steps[i];
      const auto event = events.number(to_rank(rank), i);
      const auto other = events.other_end(event);
      const auto both = [&](std::uint32_t before) {
        add(before, event);
        if (other && !buffered) {
          add(before, *other);
        }
      };
      if (other && buffered && step.kind == Step::Kind::send) {
        add(event, *other);
      }
      for (const auto before : program.after_of(step)) {
        both(events.number(to_rank(rank), before));
      }
      if (const auto earlier = events.earlier_message(event)) {
        both(*earlier);
      }
    }
  }
  std::vector<std::uint32_t> order;
  order.reserve(count);
  for (std::uint32_t event = 0; event < count; ++event) {
    if (waits[event] == 0) {
      order.push_back(event);
    }
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const auto next : wakes[order[i]]) {
      if (--waits[next] == 0) {
        order.push_back(next);
      }
    }
  }
  return order;
}

}  // namespace tutti::plan
