#include "tutti/plan/team.h"

#include <algorithm>
#include <bit>

namespace tutti::plan {

Team Team::of_all(int ranks, Rank me, Rank first) {
  const auto count = static_cast<std::size_t>(ranks);
  Team team((to_index(me) + count - to_index(first)) % count, count);
  team.first_ = to_index(first);
  return team;
}

std::optional<Team> Team::of(std::vector<Rank> members, Rank me) {
  const auto found = std::find(members.begin(), members.end(), me);
  if (found == members.end()) {
    return std::nullopt;
  }
  Team team(static_cast<std::size_t>(found - members.begin()), members.size());
  team.members_ = std::move(members);
  return team;
}

Slices slices_of(const Team& team, Span span) {
  return [span, parts = team.size()](std::size_t place) { return span.part(place % parts, parts); };
}

Branch binary_branch(std::size_t size, std::size_t place) {
  Branch branch;
  if (place > 0) {
    branch.parent = (place - 1) / 2;
  }
  for (const auto child : {2 * place + 1, 2 * place + 2}) {
    if (child < size) {
      branch.children.push_back(child);
    }
  }
  return branch;
}

/// Over members begin..end, of which those an even number after `begin` have nobody below them: down from the top,
/// which has as many before it as fill a whole tree.
Branch double_branch(std::size_t size, std::size_t place, bool second) {
  // The second tree is the first, moved on by one: who was odd is even there.
  const auto shift = second ? std::size_t{1} : 0;
  const auto moved = (place + shift) % size;
  const auto top_of = [](std::size_t begin, std::size_t end) { return begin + std::bit_floor(end - begin) - 1; };
  const auto back = [&](std::size_t at) { return (at + size - shift) % size; };
  Branch branch;
  std::size_t begin = 0;
  std::size_t end = size;
  auto top = top_of(begin, end);
  while (top != moved) {
    branch.parent = back(top);
    begin = moved < top ? begin : top + 1;
    end = moved < top ? top : end;
    top = top_of(begin, end);
  }
  if (begin < top) {
    branch.children.push_back(back(top_of(begin, top)));
  }
  if (top + 1 < end) {
    branch.children.push_back(back(top_of(top + 1, end)));
  }
  return branch;
}

Branch binomial_branch(std::size_t size, std::size_t place) {
  const auto lowest = place == 0 ? std::bit_ceil(size) : place & (~place + 1);
  Branch branch;
  if (place != 0) {
    branch.parent = place - lowest;
  }
  for (auto step = lowest / 2; step > 0; step /= 2) {
    if (place + step < size) {
      branch.children.push_back(place + step);
    }
  }
  return branch;
}

std::size_t binomial_weight(std::size_t size, std::size_t place) {
  return place == 0 ? size : std::min(place & (~place + 1), size - place);
}

}  // namespace tutti::plan
