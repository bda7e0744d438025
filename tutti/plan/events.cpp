#include "tutti/plan/events.h"

#include <algorithm>
#include <map>
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
  std::map<std::pair<Rank, Rank>, std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>>> channels;
  for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
    const auto& steps = plan.programs[rank].steps;
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      const auto event = first_[rank] + i;
      if (steps[i].kind == Step::Kind::combine) {
        continue;
      }
      const bool sends = steps[i].kind == Step::Kind::send;
      auto& channel =
          channels[sends ? std::pair(to_rank(rank), steps[i].peer) : std::pair(steps[i].peer, to_rank(rank))];
      auto& ends = sends ? channel.first : channel.second;
      earlier_[event] = ends.empty() ? kNone : ends.back();
      ends.push_back(event);
    }
  }
  for (const auto& [ranks, channel] : channels) {
    const auto& [sent, received] = channel;
    for (std::size_t i = 0; i < std::min(sent.size(), received.size()); ++i) {
      other_[sent[i]] = received[i];
      other_[received[i]] = sent[i];
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
