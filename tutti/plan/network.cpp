#include "tutti/plan/network.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace tutti::plan {
namespace {

Error wrong(const Network& network, const std::string& sentence) {
  return {Code::invalid_argument, fmt::format("network '{}': {}", network.name, sentence)};
}

bool is_amount(double value) { return value >= 0 && value < std::numeric_limits<double>::infinity(); }

/// What there is room for ends here: no count of ranks is higher.
constexpr auto kMostRanks = std::int64_t{std::numeric_limits<std::int32_t>::max()};
/// Between all pairs of which there are links.
constexpr std::int64_t kMostPaired = 2048;
constexpr std::size_t kMostCosts = 64;  // of caches, and of crowding: each is looked at for every byte that moves

Status check_level(const Network& network, std::size_t index) {
  const auto& level = network.levels[index];
  const bool last = index + 1 == network.levels.size();
  const auto says = [&](std::string_view sentence) {
    return wrong(network, fmt::format("level '{}': {}", level.name, sentence));
  };
  if (level.members < 0 || (level.members == 0 && !last)) {
    return says("members: a number above 0; 0 (as many as are needed) is for the last level");
  }
  if (level.joined == Level::Joined::by_pairs && (!last || index == 0 || level.members == 0)) {
    return says("joined by pairs: for the last level alone, and it says how many members");
  }
  if (level.joined == Level::Joined::by_pairs && level.members > kMostPaired) {
    return says(fmt::format("joined by pairs: {} members at most", kMostPaired));
  }
  if (index == 0 && (level.link != 0 || level.burst != 0)) {
    return says("a host has no links: the limit of its memory is the processors' memory");
  }
  for (const auto amount :
       {level.latency, level.stream, level.link, level.burst, level.send.seconds, level.send.seconds_per_byte,
        level.send.ramp, level.send.ramp_bytes, level.receive.seconds, level.receive.seconds_per_byte,
        level.receive.ramp, level.receive.ramp_bytes, level.ring.seconds, level.ring.answer, level.meeting.seconds,
        level.meeting.seconds_per_member}) {
    if (!is_amount(amount)) {
      return says("times and speeds are not negative, and finite");
    }
  }
  return {};
}

}  // namespace

std::int64_t Network::capacity() const {
  std::int64_t ranks = 1;
  for (const auto& level : levels) {
    ranks = level.members == 0 ? kMostRanks : std::min(kMostRanks, ranks * level.members);
  }
  return ranks;
}

Status check(const Network& network, int ranks) {
  if (network.levels.empty() || network.levels.size() > kMostLevels) {
    return wrong(network, fmt::format("it has {} levels; there are 1 to {}", network.levels.size(), kMostLevels));
  }
  for (std::size_t i = 0; i < network.levels.size(); ++i) {
    if (auto good = check_level(network, i); !good) {
      return good;
    }
  }
  const auto& processors = network.processors;
  if (processors.cores < 0 || !is_amount(processors.copy) || !is_amount(processors.reduce) ||
      !is_amount(processors.combine_seconds) || !is_amount(processors.step_seconds) ||
      !is_amount(processors.switch_seconds) || !is_amount(processors.sum) || !is_amount(processors.memory)) {
    return wrong(network, "processors: times, speeds and cores are not negative, and finite");
  }
  if (processors.caches.size() > kMostCosts || processors.crowding.size() > kMostCosts) {
    return wrong(network, fmt::format("caches and crowding: lists of {} at most", kMostCosts));
  }
  double bytes = 0;
  for (const auto& cache : processors.caches) {
    if (!(cache.bytes > bytes) || !is_amount(cache.bytes) || !is_amount(cache.seconds_per_byte)) {
      return wrong(network, "caches: bytes above 0 that grow, and speeds that are not negative");
    }
    bytes = cache.bytes;
  }
  int crowd = 0;
  for (const auto& step : processors.crowding) {
    if (step.ranks <= crowd || !(step.factor > 0)) {
      return wrong(network, "crowding: ranks above 0 that grow, and factors above 0");
    }
    crowd = step.ranks;
  }
  for (const auto& slow : network.slow) {
    if (slow.level == 0 || slow.level >= network.levels.size() || slow.group < 0 || !(slow.factor > 0)) {
      return wrong(network, "slow link: a level above the first, a group, and a factor above 0");
    }
  }
  if (ranks < 1 || ranks > network.capacity()) {
    return wrong(network, fmt::format("{} ranks, and it has room for 1 to {}", ranks, network.capacity()));
  }
  return {};
}

double CacheCost::missed(double distance, double ranks_of_host) const {
  // Something between a cache for each and one that all divide: a few ranks do not get all of it.
  const auto over = distance * (shared ? std::sqrt(ranks_of_host) : 1) / bytes;
  const auto steep = over * over;  // within a factor of three it goes from most to next to nothing
  return steep * steep / (1 + steep * steep);
}

double crowding_at(const Processors& processors, double ranks_of_host) {
  const auto& table = processors.crowding;
  if (table.empty()) {
    return 1;
  }
  const auto after =
      std::find_if(table.begin(), table.end(), [&](const Crowding& step) { return step.ranks >= ranks_of_host; });
  if (after == table.begin() || after == table.end()) {
    return after == table.end() ? table.back().factor : after->factor;
  }
  const auto before = after - 1;
  const auto share =
      std::log(ranks_of_host / before->ranks) / std::log(static_cast<double>(after->ranks) / before->ranks);
  return before->factor + share * (after->factor - before->factor);
}

Network without_caches(Network network, double footprint, std::int64_t ranks_of_host) {
  auto& processors = network.processors;
  const auto crowd = static_cast<double>(ranks_of_host);
  const auto factor = crowding_at(processors, crowd);
  double farther = 0;  // seconds per byte
  for (const auto& cache : processors.caches) {
    farther += cache.seconds_per_byte * cache.missed(footprint, crowd);
  }
  if (!processors.caches.empty() && processors.memory > 0) {
    constexpr double kLeast = 1e-6;
    processors.memory /= std::max(kLeast, processors.caches.back().missed(footprint, crowd));
  }
  const auto slow_down = [&](double& speed, int touched) {
    speed = speed > 0 ? 1 / (factor * (1 / speed + touched * farther)) : 0;
  };
  slow_down(processors.copy, 2);
  slow_down(processors.reduce, 1);
  slow_down(processors.sum, 2);
  for (auto* seconds : {&processors.combine_seconds, &processors.step_seconds, &processors.switch_seconds,
                        &network.levels[0].latency}) {
    *seconds *= factor;
  }
  for (auto& level : network.levels) {
    for (auto* cost : {&level.send, &level.receive}) {
      cost->seconds_per_byte += cost->seconds_per_byte > 0 ? farther : 0;
      cost->seconds *= factor;
      cost->seconds_per_byte *= factor;
      cost->ramp *= factor;
    }
    level.ring.seconds *= factor;
    level.ring.answer *= factor;
  }
  processors.caches.clear();
  processors.crowding.clear();
  return network;
}

Fabric::Fabric(Network network, int ranks) : network_(std::move(network)), ranks_(ranks) {
  std::int64_t span = 1;
  for (const auto& level : network_.levels) {
    const auto members = level.members == 0 ? std::max<std::int64_t>(1, (ranks + span - 1) / span) : level.members;
    span = std::min(kMostRanks, span * members);
    spans_.push_back(span);
  }
  const auto crowd = ranks_of_host();
  network_.levels[0].latency *= crowding_at(network_.processors, static_cast<double>(crowd));
  auto& ring = network_.levels[0].ring;
  if (ring.host_bytes > 0) {
    const auto near = static_cast<std::uint64_t>(crowd);
    constexpr std::uint64_t kLine = 64;
    ring.bytes = std::min(ring.bytes, std::max(kLine, std::bit_floor(ring.host_bytes / (near * near))));
  }
  first_.push_back(0);
  for (std::size_t i = 1; i < network_.levels.size(); ++i) {
    const auto& level = network_.levels[i];
    const auto below = groups(i - 1);
    first_.push_back(static_cast<std::uint32_t>(bandwidths_.size()));
    const auto count = level.joined == Level::Joined::by_pairs ? below * below : 2 * below;
    bandwidths_.resize(bandwidths_.size() + count, level.link);
    bursts_.resize(bandwidths_.size(), level.burst);
  }
  for (const auto& slow : network_.slow) {
    const auto below = groups(slow.level - 1);
    const auto group = static_cast<std::size_t>(slow.group);
    if (group >= below) {
      continue;  // fewer ranks than there is room for: that link is not used
    }
    const bool pairs = network_.levels[slow.level].joined == Level::Joined::by_pairs;
    const auto width = pairs ? below : 2;
    for (std::size_t i = 0; i < width; ++i) {
      bandwidths_[first_[slow.level] + group * width + i] *= slow.factor;
    }
  }
}

std::string Fabric::describe(std::uint32_t link) const {
  std::size_t level = 1;
  while (level + 1 < first_.size() && link >= first_[level + 1]) {
    ++level;
  }
  const auto offset = link - first_[level];
  const auto& below = network_.levels[level - 1].name;
  if (network_.levels[level].joined == Level::Joined::by_pairs) {
    const auto count = groups(level - 1);
    return fmt::format("from {} {} to {} {}", below, offset / count, below, offset % count);
  }
  return fmt::format("{} {} {} {}", offset % 2 == 0 ? "from" : "to", below, offset / 2,
                     offset % 2 == 0 ? "up" : "down");
}

double Fabric::meeting(std::size_t levels) const {
  double seconds = 0;
  std::int64_t below = 1;  // ranks of a group of the level before
  for (std::size_t i = 0; i < std::min(levels, network_.levels.size()); ++i) {
    const auto members = (std::min<std::int64_t>(ranks_, spans_[i]) + below - 1) / below;
    if (members > 1) {
      const auto& cost = network_.levels[i].meeting;
      seconds += cost.seconds + static_cast<double>(members) * cost.seconds_per_member;
      seconds += i == 0 && network_.processors.turns(members) > 1 ? network_.processors.switch_seconds : 0;
    }
    below = spans_[i];
  }
  return seconds;
}

Fabric::Path Fabric::path(Rank from, Rank to) const {
  Path path;
  while (group_of(from, path.level) != group_of(to, path.level)) {
    const auto level = path.level++;
    const auto here = group_of(from, level);
    const auto there = group_of(to, level);
    if (is_paired(level)) {
      path.links[path.count++] = link_between(level, here, there);
    } else {
      path.links[path.count++] = link_up(level, here);
      path.links[path.count++] = link_down(level, there);
    }
  }
  return path;
}

double Fabric::least(const Path& path, bool saved_up) const {
  auto least = network_.levels[path.level].stream;
  for (const auto link : path.crossed()) {
    if (const auto speed = bandwidths_[link]; speed > 0 && !(saved_up && burst(link) > 0)) {
      least = least > 0 ? std::min(least, speed) : speed;
    }
  }
  return least;
}

}  // namespace tutti::plan
