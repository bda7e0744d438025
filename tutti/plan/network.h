#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/rank.h"

namespace tutti::plan {

/// What a message costs the processor of one of its ends.
struct MessageCost {
  double seconds = 0;           ///< each
  double seconds_per_byte = 0;  ///< more, when the processor copies it
  /// More for a message's first bytes, which come one by one before they stream: all of it when the message is long,
  /// half when it has `ramp_bytes`.
  double ramp = 0;
  double ramp_bytes = 0;
};

/// Memory that messages of two ranks go through, in order: what lies there waits for the receiver, and a sender that is
/// so far ahead waits for room, so that a longer message goes in portions. A processor that turns to it moves all that
/// can be moved, of any number of messages.
struct RingCost {
  std::uint64_t bytes = 0;       ///< 0: there is none, and no limit
  std::uint64_t portion = 0;     ///< the most that goes at a time, so that its ends overlap; 0: what there is room for
  std::uint64_t host_bytes = 0;  ///< of all pairs of a host's ranks, which share them in powers of two; 0: no limit
  double seconds = 0;            ///< each turn
  double answer = 0;             ///< seconds that each end spends on asking for the rest of a longer message
};

/// What it takes those who join a level to find out that all are there and want the same.
struct MeetingCost {
  double seconds = 0;
  double seconds_per_member = 0;  ///< more, for each that takes part
};

/// Ranks that are equally far from each other. The first level is a host, whose members are ranks; the members of each
/// next one are groups of the level before: hosts at a switch, switches at a larger one.
struct Level {
  enum class Joined : std::uint8_t {
    by_switch,  ///< each member has one link up and one down
    by_pairs,   ///< each ordered pair of members has a link; the last level only
  };

  std::string name;
  int members = 0;  ///< 0, of the last level: as many as are needed
  Joined joined = Joined::by_switch;

  // Of messages between ranks that this is the lowest level to join.
  double latency = 0;  ///< seconds from the last byte sent to the last byte there
  double stream = 0;   ///< bytes per second of one message alone; 0: no limit of its own
  MessageCost send = {};
  MessageCost receive = {};
  std::uint64_t eager_bytes = UINT64_MAX;  ///< longer ones wait until the receiver wants them, or asks for the rest
  RingCost ring = {};

  MeetingCost meeting = {};  ///< before each operation

  /// Bytes per second of each of its links, each way, shared by what crosses it at the same time; 0: no limit. The
  /// first level has no links: there messages are what processors copy.
  double link = 0;
  /// What each of its links saves up of its bandwidth while nothing crosses it: so many bytes then pass at once, as
  /// where a token bucket sets the limit. A cable saves nothing.
  double burst = 0;
  std::string source = {};  ///< where the figures come from
};

/// Where bytes stay that a rank has touched, until it has touched so many others.
struct CacheCost {
  double bytes = 0;
  double seconds_per_byte = 0;  ///< what a byte costs more that is not there any more
  bool shared = false;          ///< by the ranks of a host, so that the more there are the less each has

  /// Of bytes that a rank comes back to after so many others: the share that is not there any more.
  double missed(double distance, double ranks_of_host) const;
};

/// How much longer processors take for anything while so many ranks of a host are at work, besides taking turns on
/// cores: they share power, and often cores are two of one.
struct Crowding {
  int ranks = 0;
  double factor = 1;
};

/// What the ranks of one host can do.
struct Processors {
  int cores = 0;               ///< of a host; ranks that outnumber them take turns. 0: one for each rank
  double copy = 0;             ///< bytes per second of one rank; 0: costs nothing
  double reduce = 0;           ///< bytes per second that one rank adds to others; 0: costs nothing
  double sum = 0;              ///< bytes per second of a sum that it begins and writes, however many are added to it
  double combine_seconds = 0;  ///< to begin a copy or an addition
  double step_seconds = 0;     ///< for each step of a plan, whatever it does, also when that is nothing
  double switch_seconds = 0;   ///< until a rank that waited has its core again, where ranks outnumber cores
  /// Bytes per second that all ranks of a host copy and add together; with caches, of those that are in none of them.
  /// 0: no limit.
  double memory = 0;
  std::vector<CacheCost> caches = {};  ///< from the nearest
  /// In order of ranks; between two the factor follows the logarithm of the ranks, before and after them it stays.
  std::vector<Crowding> crowding = {};
  std::string source = {};

  /// How many share a core when so many are at work. Those of two cores do not help out a third of their ranks' time:
  /// three take as long as four.
  std::int64_t turns(std::int64_t ranks_of_host) const { return cores > 0 ? (ranks_of_host + cores - 1) / cores : 1; }
};

/// A link that is slower than others of its kind.
struct SlowLink {
  std::size_t level = 0;
  int group = 0;      ///< which group of the level below it belongs to
  double factor = 1;  ///< of the level's bandwidth
};

/// What plans are priced on: plain data, any number of ranks up to `capacity`. Ranks fill hosts in order.
struct Network {
  std::string name;
  Processors processors;
  std::vector<Level> levels;
  std::vector<SlowLink> slow = {};

  /// The most ranks that it has room for.
  std::int64_t capacity() const;
};

inline constexpr std::size_t kMostLevels = 5;

/// How much slower processors are while so many ranks of a host are at work; 1 where nothing is known.
double crowding_at(const Processors& processors, double ranks_of_host);

/// The same without caches and crowding, for who does not follow single bytes and ranks: as if all came back to a byte
/// after so many others (see `footprint`), and all ranks of a host were always at work.
Network without_caches(Network network, double footprint, std::int64_t ranks_of_host);

/// Whether its figures can be, and it has room for the ranks; otherwise an error that says what to change.
Status check(const Network& network, int ranks);

/// A network with so many ranks on it: its links, numbered. Keeps a copy of the network; any thread.
class Fabric {
 public:
  /// The links that a message crosses.
  struct Path {
    std::size_t level = 0;  ///< the lowest one that joins the two
    std::size_t count = 0;
    std::array<std::uint32_t, 2 * kMostLevels> links{};

    std::span<const std::uint32_t> crossed() const& { return std::span(links).first(count); }
    void crossed() const&& = delete;  // it would be gone before the loop over it
  };

  /// `check` has to have been passed.
  Fabric(Network network, int ranks);

  const Network& network() const { return network_; }
  int ranks() const { return ranks_; }
  std::size_t links() const { return bandwidths_.size(); }
  double bandwidth(std::uint32_t link) const { return bandwidths_[link]; }
  /// Bytes that it saves up; 0 where it has no limit.
  double burst(std::uint32_t link) const { return bandwidths_[link] > 0 ? bursts_[link] : 0; }
  /// "from host 3 up", for people.
  std::string describe(std::uint32_t link) const;

  /// How many ranks a group of that level has when it is full.
  std::int64_t ranks_of_group(std::size_t level) const { return spans_[level]; }
  /// Which group of that level a rank is in, and how many there are.
  std::size_t group_of(Rank rank, std::size_t level) const {
    return static_cast<std::size_t>(to_int(rank) / spans_[level]);
  }
  std::size_t groups(std::size_t level) const {
    return static_cast<std::size_t>((ranks_ + spans_[level] - 1) / spans_[level]);
  }
  std::size_t host_of(Rank rank) const { return group_of(rank, 0); }
  std::size_t hosts() const { return groups(0); }
  /// The most ranks that one has.
  std::int64_t ranks_of_host() const { return std::min<std::int64_t>(ranks_, spans_[0]); }
  /// The links of a group to and from the level above, or to another group there when that is joined by pairs.
  std::uint32_t link_up(std::size_t level, std::size_t group) const {
    return first_[level + 1] + static_cast<std::uint32_t>(2 * group);
  }
  std::uint32_t link_down(std::size_t level, std::size_t group) const { return link_up(level, group) + 1; }
  std::uint32_t link_between(std::size_t level, std::size_t from, std::size_t to) const {
    return first_[level + 1] + static_cast<std::uint32_t>(from * groups(level) + to);
  }
  bool is_paired(std::size_t level) const {
    return level + 1 < network_.levels.size() && network_.levels[level + 1].joined == Level::Joined::by_pairs;
  }
  /// How long all ranks take to meet before an operation: level by level, of the first ones or of all.
  double meeting(std::size_t levels = kMostLevels) const;
  /// `from` and `to` differ.
  Path path(Rank from, Rank to) const;
  /// Bytes per second of a message that has the path for itself; 0: no limit.
  double alone(const Path& path) const { return least(path, false); }
  /// The same of bytes that its links have saved up for.
  double at_once(const Path& path) const { return least(path, true); }

 private:
  double least(const Path& path, bool saved_up) const;

  Network network_;
  int ranks_;
  std::vector<std::int64_t> spans_;   // ranks of a group, by level
  std::vector<std::uint32_t> first_;  // link, by level
  std::vector<double> bandwidths_;
  std::vector<double> bursts_;
};

}  // namespace tutti::plan
