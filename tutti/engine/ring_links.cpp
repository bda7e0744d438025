#include "tutti/engine/ring_links.h"

#include <algorithm>

namespace tutti::engine {

RingLinks::RingLinks(Hub& hub)
    : hub_(hub),
      sends_(static_cast<std::size_t>(hub.ranks())),
      receives_(static_cast<std::size_t>(hub.ranks())),
      sent_(static_cast<std::size_t>(hub.ranks())) {}

void RingLinks::send(Rank to, ConstBlock bytes, std::uint32_t number) {
  sends_[to_index(to)].push_back({bytes, number});
  ++sent_[to_index(to)].messages;
  sent_[to_index(to)].bytes += bytes.size();
}

void RingLinks::receive(Rank from, Block bytes, std::uint32_t number) {
  receives_[to_index(from)].push_back({bytes, number});
}

bool RingLinks::move(std::vector<std::uint32_t>& over) {
  bool moved_any = false;
  for (std::size_t peer = 0; peer < sends_.size(); ++peer) {
    bool moved = false;
    const auto drain = [&](auto& queue, const auto& transfer) {
      while (!queue.empty()) {
        auto& message = queue.front();
        const auto count = transfer(message.rest);
        moved = moved || count != 0;
        message.rest = message.rest.subspan(count);
        if (!message.rest.empty()) {
          break;
        }
        over.push_back(message.number);
        queue.pop_front();
      }
    };
    const auto rank = to_rank(peer);
    drain(receives_[peer], [&](Block bytes) { return hub_.link(rank, hub_.rank()).read(bytes); });
    drain(sends_[peer], [&](ConstBlock bytes) { return hub_.link(hub_.rank(), rank).write(bytes); });
    if (moved) {
      memory::ring(hub_.bell(rank));  // there is something to read, or room to write
      moved_any = true;
    }
  }
  return moved_any;
}

std::vector<Rank> RingLinks::awaited() const {
  std::vector<Rank> ranks;
  for (std::size_t peer = 0; peer < sends_.size(); ++peer) {
    if (!sends_[peer].empty() || !receives_[peer].empty()) {
      ranks.push_back(to_rank(peer));
    }
  }
  return ranks;
}

Status RingLinks::advance(std::vector<std::uint32_t>& over, const Doing& doing, Deadline deadline) {
  const auto give_up = [&] {
    const auto who = awaited();
    return hub_.is_broken() ||
           std::any_of(who.begin(), who.end(), [&](Rank peer) { return hub_.lost(peer, doing.text()).has_value(); });
  };
  if (memory::wait_until(
          hub_.bell(hub_.rank()), hub_.patience(), deadline, [&] { return move(over); }, give_up)) {
    return {};
  }
  const auto error = hub_.give_up_on(awaited(), doing);
  forget();
  return error;
}

void RingLinks::forget() {
  for (auto& queue : sends_) {
    queue.clear();
  }
  for (auto& queue : receives_) {
    queue.clear();
  }
}

}  // namespace tutti::engine
