#include "tutti/memory/free_list.h"

#include <algorithm>

namespace tutti::memory {
namespace {

constexpr std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

std::size_t FreeList::rounded(std::size_t bytes) {
  return bytes >= kPage ? round_up(bytes, kPage) : std::max(round_up(bytes, kAlignment), kAlignment);
}

std::optional<std::size_t> FreeList::take(std::size_t bytes) {
  const auto wanted = rounded(bytes);
  const auto unit = wanted >= kPage ? kPage : kAlignment;
  for (auto candidate = by_size_.lower_bound({wanted, 0}); candidate != by_size_.end(); ++candidate) {
    const auto [length, offset] = *candidate;
    const auto begin = round_up(offset, unit);
    if (begin + wanted > offset + length) {
      continue;  // large enough, but not from where it may start
    }
    erase(blocks_.find(offset));
    if (begin > offset) {
      insert(offset, begin - offset);
    }
    if (begin + wanted < offset + length) {
      insert(begin + wanted, offset + length - begin - wanted);
    }
    return begin;
  }
  return std::nullopt;
}

void FreeList::give(std::size_t offset, std::size_t bytes) {
  auto begin = offset;
  auto end = offset + rounded(bytes);
  const auto next = blocks_.lower_bound(offset);
  if (next != blocks_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      erase(before);
    }
  }
  if (next != blocks_.end() && next->first == end) {
    end += next->second;
    erase(next);
  }
  insert(begin, end - begin);
}

FreeList::ByOffset::const_iterator FreeList::ending_at(std::size_t end) const {
  if (blocks_.empty()) {
    return blocks_.end();
  }
  const auto last = std::prev(blocks_.end());
  return last->first + last->second == end ? last : blocks_.end();
}

std::size_t FreeList::tail_bytes(std::size_t end) const {
  const auto last = ending_at(end);
  return last == blocks_.end() ? 0 : last->second;
}

std::optional<std::size_t> FreeList::take_tail(std::size_t end, std::size_t at_least) {
  const auto last = ending_at(end);
  if (last == blocks_.end() || last->second < at_least) {
    return std::nullopt;
  }
  const auto offset = last->first;
  erase(blocks_.find(offset));
  return offset;
}

void FreeList::insert(std::size_t offset, std::size_t bytes) {
  blocks_.emplace(offset, bytes);
  by_size_.emplace(bytes, offset);
  free_bytes_ += bytes;
}

void FreeList::erase(ByOffset::iterator block) {
  by_size_.erase({block->second, block->first});
  free_bytes_ -= block->second;
  blocks_.erase(block);
}

}  // namespace tutti::memory
