#include "tutti/engine/mpi/far_links.h"

#include <algorithm>

namespace tutti::engine::mpi {

FarLinks::FarLinks(Requests& requests, Communicator where, int tag, int ranks)
    : requests_(requests),
      where_(where),
      tag_(tag),
      sends_(static_cast<std::size_t>(ranks)),
      receives_(static_cast<std::size_t>(ranks)) {}

int FarLinks::send(Rank to, ConstBlock bytes, std::uint32_t number) {
  return add({.peer = to, .sends = true, .data = const_cast<std::byte*>(bytes.data()), .bytes = bytes.size()}, number);
}

int FarLinks::receive(Rank from, Block bytes, std::uint32_t number) {
  if (bytes.size() > kPart) {
    pace_.begin(std::chrono::steady_clock::now());
  }
  return add({.peer = from, .data = bytes.data(), .bytes = bytes.size()}, number);
}

FarLinks::Lane& FarLinks::lane_of(const Message& message) {
  return (message.sends ? sends_ : receives_)[to_index(message.peer)];
}

int FarLinks::add(Message message, std::uint32_t number) {
  message.in_parts = in_parts_ && message.bytes > kPart;
  messages_[number] = message;
  auto& lane = lane_of(message);
  lane.waiting.push_back(number);
  return begin_more(lane);
}

int FarLinks::begin_more(Lane& lane) {
  while (!lane.waiting.empty()) {
    const auto number = lane.waiting.front();
    auto& message = messages_[number];
    const auto rest = message.bytes - message.begun;
    const auto bytes = message.in_parts ? std::min(rest, kPart) : rest;
    if (message.in_parts) {
      if (lane.under_way + bytes > kAtOnce) {
        return 0;
      }
      lane.under_way += bytes;
    }
    if (bytes == rest) {
      lane.waiting.pop_front();
    }
    if (const int error = begin_part(message, number, bytes); error != 0) {
      return error;
    }
  }
  return 0;
}

int FarLinks::begin_part(Message& message, std::uint32_t number, std::size_t bytes) {
  const auto id = next_part_++;
  parts_[id] = {number, bytes};
  auto* const data = message.data + message.begun;
  message.begun += bytes;
  const int peer = to_int(message.peer);
  if (!message.sends) {
    return requests_.receive(where_, peer, tag_, data, bytes, id);
  }
  return message.in_parts ? requests_.send_until_taken(where_, peer, tag_, data, bytes, id)
                          : requests_.send(where_, peer, tag_, data, bytes, id);
}

int FarLinks::poll(std::vector<std::uint32_t>& over, bool& moved) {
  ends_.clear();
  int error = requests_.poll(ends_);
  for (const auto& end : ends_) {
    const int failed = end.error != 0 ? end.error : finish_part(end.number, over);  // what failed is still awaited
    error = error == 0 ? failed : error;
  }
  moved = moved || !ends_.empty();
  return error;
}

int FarLinks::finish_part(std::uint32_t id, std::vector<std::uint32_t>& over) {
  const auto part = parts_.extract(id).mapped();
  auto& message = messages_[part.message];
  auto& lane = lane_of(message);
  message.over += part.bytes;
  if (message.in_parts) {
    lane.under_way -= part.bytes;
  }
  if (message.over == message.bytes) {
    if (!message.sends && message.bytes > kPart) {
      pace_.end(std::chrono::steady_clock::now(), message.bytes);
    }
    over.push_back(part.message);
    messages_.erase(part.message);
  }
  return begin_more(lane);
}

std::vector<Rank> FarLinks::awaited() const {
  std::vector<Rank> ranks;
  for (const auto& [number, message] : messages_) {
    ranks.push_back(message.peer);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void FarLinks::forget() {
  messages_.clear();
  parts_.clear();
  pace_ = {};
  sends_.assign(sends_.size(), {});
  receives_.assign(receives_.size(), {});
}

}  // namespace tutti::engine::mpi
