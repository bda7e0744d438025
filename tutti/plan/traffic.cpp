#include "tutti/plan/traffic.h"

#include <algorithm>
#include <map>

#include "tutti/plan/events.h"

namespace tutti::plan {
namespace {

/// Over all ways through the plan, the most messages of which each waits for the one before.
std::uint32_t longest_chain(const Plan& plan) {
  const Events events(plan);
  std::vector<std::uint32_t> chain(events.size(), 0);  // that end with this step
  std::uint32_t longest = 0;
  for (const auto event : order_events(plan, events, true)) {
    const auto rank = events.rank(event);
    const auto& program = plan.programs[to_index(rank)];
    const auto& step = program.steps[events.step(event)];
    for (const auto before : program.after_of(step)) {
      chain[event] = std::max(chain[event], chain[events.number(rank, before)]);
    }
    if (const auto other = events.other_end(event); other && step.kind == Step::Kind::receive) {
      chain[event] = std::max(chain[event], chain[*other] + 1);
    }
    longest = std::max(longest, chain[event]);
  }
  return longest;
}

}  // namespace

Traffic count_traffic(const Plan& plan) {
  Traffic traffic;
  const double block = plan.shape.pieces;
  std::uint64_t total = 0;
  std::map<std::pair<std::size_t, Rank>, std::uint64_t> links;
  for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
    std::uint32_t messages = 0;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    for (const auto& step : plan.programs[rank].steps) {
      if (step.kind == Step::Kind::send) {
        ++messages;
        sent += step.span.count;
        links[{rank, step.peer}] += step.span.count;
      } else if (step.kind == Step::Kind::receive) {
        received += step.span.count;
      }
    }
    traffic.most_messages = std::max(traffic.most_messages, messages);
    traffic.most_sent = std::max(traffic.most_sent, static_cast<double>(sent) / block);
    traffic.most_received = std::max(traffic.most_received, static_cast<double>(received) / block);
    total += sent;
  }
  traffic.total = static_cast<double>(total) / block;
  for (const auto& [link, amount] : links) {
    traffic.most_on_a_link = std::max(traffic.most_on_a_link, static_cast<double>(amount) / block);
  }
  traffic.longest_chain = longest_chain(plan);
  return traffic;
}

}  // namespace tutti::plan
