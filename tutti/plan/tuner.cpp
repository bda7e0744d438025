#include "tutti/plan/tuner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>
#include <utility>

#include <fmt/format.h>

namespace tutti::plan {
namespace {

using Kind = Choice::Kind;
constexpr std::size_t kKi = 1024;
constexpr std::size_t kMi = 1024 * kKi;
/// A shorter chunk costs more than it hides.
constexpr std::size_t kShortestChunk = 8 * kKi;
/// As quick as the quickest.
constexpr double kAlike = 1.02;

/// Not where what comes is neither added nor passed on: one message carries it as well.
bool gains_by_chunks(Algorithm algorithm, Op op) {
  return takes_chunks(algorithm, op) && (algorithm != Algorithm::direct || reduces(op));
}

/// What MPI's own collectives are there for.
bool has_library(Op op) {
  return op == Op::all_reduce || op == Op::all_gather || op == Op::broadcast || op == Op::all_to_all;
}

/// Everyone gets everything from everybody.
bool repeats_itself(Algorithm algorithm) {
  return algorithm == Algorithm::one_shot || algorithm == Algorithm::recursive_doubling;
}

class Candidates {
 public:
  Candidates(Op op, const GroupShape& shape, std::size_t bytes) : op_(op), shape_(shape), bytes_(bytes) {}

  std::vector<std::optional<Choice>> all() {
    found_.emplace_back();
    if (shape_.hosts.size() == 1) {
      add_ways_in_memory();
    } else {
      if (has_library(op_)) {
        add({.kind = Kind::library});
      }
      if (op_ == Op::all_reduce) {
        add_ways_between_hosts();
      }
    }
    for (const auto algorithm : algorithms_for(op_)) {
      add_plans(algorithm);
    }
    return std::move(found_);
  }

 private:
  int fewest() const { return *std::min_element(shape_.hosts.begin(), shape_.hosts.end()); }

  void add(const Choice& choice) { found_.emplace_back(choice); }

  void add_ways_in_memory() {
    if (bytes_ <= 64 * kKi) {
      add({.kind = Kind::at_once});
    }
    add({.kind = Kind::in_slices});
    for (const auto slice : {64 * kKi, 128 * kKi}) {
      if (bytes_ > slice) {
        add({.kind = Kind::in_slices, .slice = slice});
      }
    }
  }

  void add_ways_between_hosts() {
    if (bytes_ <= kMi) {
      add({.kind = Kind::at_once});
    }
    if (bytes_ < 4 * kKi) {
      return;
    }
    for (const auto slice : {128 * kKi, 512 * kKi, 2 * kMi}) {
      if (slice > 128 * kKi && bytes_ <= slice / 2) {
        continue;
      }
      for (const auto leaders : leader_counts()) {
        for (const auto between : outer_algorithms()) {
          add({.kind = Kind::in_slices, .leaders = leaders, .between = between, .slice = slice});
        }
      }
    }
  }

  std::vector<unsigned> leader_counts() const {
    const auto most = static_cast<unsigned>(fewest());
    return most == 1 ? std::vector<unsigned>{1} : std::vector<unsigned>{1, most};
  }

  std::vector<Algorithm> outer_algorithms() const {
    if (shape_.hosts.size() == 2) {
      return {Algorithm::recursive_doubling};
    }
    return {Algorithm::recursive_doubling, Algorithm::halving_doubling, Algorithm::ring};
  }

  void add_plans(Algorithm algorithm) {
    const bool hybrid = algorithm == Algorithm::hybrid;
    if (hybrid && (shape_.hosts.size() == 1 || fewest() == 1)) {
      return;
    }
    if (repeats_itself(algorithm) && shape_.ranks() > 2 && bytes_ > kMi) {
      return;
    }
    for (const unsigned chunks : {1U, 4U, 16U}) {
      if (chunks > 1 && (!gains_by_chunks(algorithm, op_) || bytes_ / chunks < kShortestChunk)) {
        break;
      }
      if (hybrid) {
        add_hybrids(chunks);
      } else {
        add({.algorithm = algorithm, .chunks = chunks});
      }
    }
  }

  /// Between two hosts all algorithms do about the same.
  void add_hybrids(unsigned chunks) {
    std::vector<std::optional<Algorithm>> between{std::nullopt};
    if (shape_.hosts.size() > 2 && bytes_ >= 4 * kKi) {
      between.insert(between.end(), {Algorithm::ring, Algorithm::tree});
    }
    for (const auto leaders : leader_counts()) {
      for (const auto outer : between) {
        add({.algorithm = Algorithm::hybrid, .chunks = chunks, .leaders = leaders, .between = outer});
      }
    }
  }

  Op op_;
  const GroupShape& shape_;
  std::size_t bytes_;
  std::vector<std::optional<Choice>> found_;
};

/// Between the two, as logarithms go, and a number that people can read.
std::size_t middle(std::size_t below, std::size_t above) {
  const auto exact = std::sqrt(static_cast<double>(std::max<std::size_t>(below, 1)) * static_cast<double>(above));
  const auto bytes = static_cast<std::size_t>(exact);
  const auto unit = bytes >= 16 * kMi ? kMi : bytes >= 16 * kKi ? kKi : 1;
  return std::clamp(bytes / unit * unit, below + 1, above);
}

}  // namespace

int GroupShape::ranks() const { return std::accumulate(hosts.begin(), hosts.end(), 0); }

GroupShape GroupShape::parse(std::string_view text) {
  const auto space = std::min(text.rfind(' '), text.size());
  GroupShape shape{.engine = std::string(text.substr(0, space)), .hosts = {}};
  std::istringstream numbers{std::string(text.substr(std::min(text.size(), space + 1)))};
  int at_switch = 0;
  for (int count = 0; numbers >> count;) {
    shape.hosts.push_back(count);
    ++at_switch;
    if (numbers.get() == '|') {
      shape.switches.push_back(std::exchange(at_switch, 0));
    }
  }
  if (!shape.switches.empty()) {
    shape.switches.push_back(at_switch);
  }
  return shape;
}

std::string GroupShape::text() const {
  auto text = engine;
  char mark = ' ';
  std::size_t next_switch = 0;
  int left = switches.empty() ? 0 : switches[0];
  for (const auto ranks_of_host : hosts) {
    text += fmt::format("{}{}", mark, ranks_of_host);
    mark = '+';
    if (--left == 0 && ++next_switch < switches.size()) {
      left = switches[next_switch];
      mark = '|';
    }
  }
  return text;
}

std::vector<std::optional<Choice>> candidates(Op op, const GroupShape& shape, std::size_t bytes) {
  return Candidates(op, shape, bytes).all();
}

const Tried& pick(const TriedSize& size, const std::optional<Choice>& before) {
  const auto& tried = size.tried;
  const auto quickest = std::min_element(tried.begin(), tried.end(), [](const Tried& a, const Tried& b) {
    return std::pair(!a.to_the_end, a.seconds) < std::pair(!b.to_the_end, b.seconds);
  });
  for (const auto& wanted : {std::optional<Choice>(), before}) {
    const auto found =
        std::find_if(tried.begin(), tried.end(), [&](const Tried& each) { return each.choice == wanted; });
    if (found != tried.end() && found->to_the_end && found->seconds <= kAlike * quickest->seconds) {
      return *found;
    }
  }
  return *quickest;
}

Choices choose(const std::vector<TriedSize>& sizes) {
  Choices choices;
  std::optional<Choice> before;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    before = pick(sizes[i], before).choice;
    choices.add(i == 0 ? 0 : middle(sizes[i - 1].bytes, sizes[i].bytes), before);
  }
  return choices;
}

}  // namespace tutti::plan
