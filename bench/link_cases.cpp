#include "bench/link_cases.h"

#include <algorithm>

#include "tutti/engine/hub.h"

namespace bench {
namespace {

using tutti::plan::Algorithm;
using tutti::plan::Op;

constexpr std::size_t kKi = 1024;
constexpr std::size_t kMi = 1024 * kKi;
constexpr std::size_t kShortestChunk = kKi;  // nobody would have less in a message of several

/// How many ranks of a host take part: in one set, and in the other. One of them is no power of two, since some plans
/// do more then.
std::vector<int> calibrated_counts(const Ranks& ranks) {
  constexpr int kOdd = 5;
  std::vector<int> counts;
  for (int count = ranks.hosts > 1 ? 1 : 2; count < ranks.of_host; count *= 2) {
    counts.push_back(count);
  }
  counts.push_back(ranks.of_host);
  if (ranks.of_host > kOdd) {
    counts.push_back(kOdd);
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  }
  return counts;
}

std::vector<int> compared_counts(const Ranks& ranks) {
  std::vector<int> counts;
  for (int count = 3; count < ranks.of_host; count *= 2) {
    counts.push_back(count);
  }
  return counts.empty() ? std::vector{ranks.of_host} : counts;  // too few for others: then other sizes have to do
}

std::vector<LinkCase> all_of(const Ranks& ranks, const std::vector<int>& counts, const std::vector<LinkKind>& kinds,
                             const std::vector<std::size_t>& sizes) {
  std::vector<LinkCase> cases;
  for (const auto count : counts) {
    for (const auto& kind : kinds) {
      if (kind.algorithm == Algorithm::hybrid && (ranks.hosts == 1 || static_cast<int>(kind.leaders) > count)) {
        continue;
      }
      auto one = link_case(kind, {.hosts = ranks.hosts, .of_host = count}, 0);
      const auto pieces = tutti::plan::shape_of(one.plan.request).value().pieces;
      for (const auto bytes : sizes) {
        one.plan.bytes = bytes;
        if (is_short(one) && (kind.chunks == 1 || bytes >= pieces * kShortestChunk)) {
          cases.push_back(one);
        }
      }
    }
  }
  return cases;
}

/// The second best, or of less than three the best; `times` is not empty.
double good_one_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() < 3 ? 0 : 1];
}

}  // namespace

LinkCase link_case(const LinkKind& kind, const Ranks& taking_part, std::size_t bytes) {
  const auto count = taking_part.of_host;
  LinkCase one{.hosts = taking_part.hosts};
  one.plan = {.request = {.op = kind.op,
                          .algorithm = kind.algorithm,
                          .ranks = taking_part.hosts * count,
                          .chunks = kind.chunks},
              .ranks_of_host = count,
              .bytes = bytes};
  if (kind.algorithm == Algorithm::hybrid) {
    one.plan.request.leaders = kind.leaders;
    for (int host = 0; host < taking_part.hosts; ++host) {
      auto& members = one.plan.request.hosts.emplace_back();
      for (int i = 0; i < count; ++i) {
        members.push_back(tutti::Rank{host * count + i});
      }
    }
  }
  return one;
}

bool is_short(const LinkCase& one) {
  constexpr std::uint64_t kMostMessages = std::uint64_t{1} << 22;  // were it of everyone to everybody, in every chunk
  constexpr std::uint64_t kMostMoved = std::uint64_t{1} << 34;     // bytes, of all ranks' blocks
  const auto ranks = static_cast<std::uint64_t>(one.plan.request.ranks);
  return ranks * ranks * one.plan.request.chunks <= kMostMessages && ranks * one.plan.bytes <= kMostMoved;
}

void LinkCase::settle() { plan.seconds = good_one_of(rounds); }

double LinkCase::scatter() const {
  if (rounds.size() < 2) {
    return 0;
  }
  const auto half = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  const auto first = good_one_of({rounds.begin(), half});
  const auto second = good_one_of({half, rounds.end()});
  return std::max(first, second) / std::min(first, second) - 1;
}

std::vector<tutti::Rank> LinkCase::members(const Ranks& ranks) const {
  std::vector<tutti::Rank> members;
  for (int host = 0; host < hosts; ++host) {
    for (int i = 0; i < plan.ranks_of_host; ++i) {
      members.push_back(tutti::Rank{host * ranks.of_host + i});
    }
  }
  return members;
}

tutti::plan::Network guess_network(const Ranks& ranks, int cores_of_host) {
  using tutti::engine::HubLayout;
  constexpr int kMany = 64;  // ranks whose rings take as much memory as they may
  tutti::plan::Network network;
  network.name = ranks.hosts == 1 ? "this host" : "these hosts";
  network.processors = {.cores = cores_of_host,
                        .copy = 2e10,
                        .reduce = 5e10,
                        .sum = 2.5e10,
                        .combine_seconds = 2e-8,
                        .step_seconds = 2e-8,
                        .switch_seconds = 1e-6,
                        .memory = 6e10};
  network.processors.caches = {{.bytes = 2.0 * kMi, .seconds_per_byte = 2e-11},
                               {.bytes = 100.0 * kMi, .seconds_per_byte = 5e-11, .shared = true}};
  double factor = 1;
  for (const auto count : calibrated_counts(ranks)) {
    network.processors.crowding.push_back({count, factor});
    factor *= 1.05;
  }
  network.levels.push_back({.name = "host",
                            .members = ranks.of_host,
                            .latency = 1e-7,
                            .send = {5e-8, 1e-10, 2e-7, 1500},
                            .receive = {5e-8, 1e-10, 2e-7, 1500},
                            .ring = {.bytes = HubLayout::for_ranks(2).link_bytes,
                                     .host_bytes = HubLayout::for_ranks(kMany).link_bytes * kMany * kMany,
                                     .seconds = 3e-7},
                            .meeting = {3e-7, 5e-8}});
  if (ranks.hosts > 1) {
    network.levels.push_back(
        {.name = "hosts",
         .latency = 5e-6,
         .send = {3e-6, 3e-10, 2e-6, 2000},
         .receive = {3e-6, 3e-10, 2e-6, 2000},
         .eager_bytes = 64 * kKi - 16,  // as Open MPI over TCP, with its header before them
         .ring = {.bytes = 4 * kMi, .portion = 32 * kKi, .seconds = 2e-6, .answer = 3e-6},  // sockets
         .meeting = {1e-5, 1e-6},
         .link = 5e8,
         .burst = 16.0 * kKi});
  }
  return network;
}

std::vector<LinkCase> calibration_cases(const Ranks& ranks) {
  const std::vector<LinkKind> kinds{{Op::all_reduce, Algorithm::ring},
                                    {Op::all_reduce, Algorithm::ring, 4},
                                    {Op::all_reduce, Algorithm::tree, 8},
                                    {Op::all_reduce, Algorithm::double_tree, 4},
                                    {Op::all_reduce, Algorithm::recursive_doubling},
                                    {Op::all_reduce, Algorithm::recursive_doubling, 4},
                                    {Op::all_reduce, Algorithm::halving_doubling},
                                    {Op::all_reduce, Algorithm::one_shot},
                                    {Op::all_reduce, Algorithm::direct},
                                    {Op::all_reduce, Algorithm::hybrid},
                                    {Op::all_gather, Algorithm::ring},
                                    {Op::reduce_scatter, Algorithm::direct},
                                    {Op::broadcast, Algorithm::tree, 8},
                                    {Op::broadcast, Algorithm::binomial}};
  const auto counts = calibrated_counts(ranks);
  auto sizes = std::vector{256 * std::size_t{1}, 4 * kKi, 32 * kKi, 256 * kKi, kMi, 4 * kMi};
  if (ranks.hosts == 1) {
    sizes.insert(sizes.end(), {8 * kMi, 24 * kMi});  // on both sides of where bytes leave the last cache
  } else {
    sizes.push_back(64 * kKi);  // the kernel cuts messages up, each length in another way
  }
  std::sort(sizes.begin(), sizes.end());
  auto cases = all_of(ranks, counts, {kinds.front()}, {0});  // meets, and no more
  for (auto& one : all_of(ranks, counts, kinds, sizes)) {
    cases.push_back(std::move(one));
  }
  return cases;
}

std::vector<LinkCase> comparison_cases(const Ranks& ranks) {
  auto sizes = std::vector{kKi, 16 * kKi, 128 * kKi, 512 * kKi, 2 * kMi};
  if (ranks.hosts == 1) {
    sizes.push_back(12 * kMi);
  }
  return all_of(ranks, compared_counts(ranks),
                {{Op::all_reduce, Algorithm::ring},
                 {Op::all_reduce, Algorithm::ring, 4},
                 {Op::all_reduce, Algorithm::tree, 4},
                 {Op::all_reduce, Algorithm::tree, 16},
                 {Op::all_reduce, Algorithm::double_tree, 4},
                 {Op::all_reduce, Algorithm::recursive_doubling},
                 {Op::all_reduce, Algorithm::recursive_doubling, 4},
                 {Op::all_reduce, Algorithm::halving_doubling},
                 {Op::all_reduce, Algorithm::one_shot},
                 {Op::all_reduce, Algorithm::direct},
                 {Op::all_reduce, Algorithm::hybrid, 4},
                 {Op::all_reduce, Algorithm::hybrid, 1, 2},
                 {Op::all_gather, Algorithm::ring},
                 {Op::reduce_scatter, Algorithm::direct},
                 {Op::broadcast, Algorithm::tree, 4}},
                sizes);
}

}  // namespace bench
