#include "tutti/plan/price.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tutti/plan/estimate.h"
#include "tutti/plan/footprint.h"

namespace tutti::plan {
namespace {

/// What a collective's bytes are counted as, so that algorithms and rank counts compare: what every rank has to send in
/// the best of plans.
double bus_bytes(Op op, double ranks, double block) {
  switch (op) {
    case Op::all_reduce: return 2 * (ranks - 1) / ranks * block;
    case Op::broadcast:
    case Op::reduce: return block;
    default: return (ranks - 1) * block;
  }
}

bool has_chunks(const Request& request) { return takes_chunks(request.algorithm, request.op); }

/// Whether chunks follow each other through the same steps, so that after some each takes as long as the one before.
bool is_pipeline(const Request& request) {
  return request.algorithm == Algorithm::tree || request.algorithm == Algorithm::double_tree ||
         request.algorithm == Algorithm::recursive_doubling;
}

/// What all ranks send, about.
double moved_bytes(const Request& request, double block) {
  const auto ranks = static_cast<double>(request.ranks);
  const auto doublings = std::max(1.0, std::log2(ranks));
  switch (request.op) {
    case Op::all_reduce:
      switch (request.algorithm) {
        case Algorithm::one_shot: return ranks * ranks * block;
        case Algorithm::recursive_doubling: return ranks * doublings * block;
        case Algorithm::hybrid: {
          const auto hosts = static_cast<double>(request.hosts.size());
          const auto between = request.outer == Algorithm::one_shot             ? hosts
                               : request.outer == Algorithm::recursive_doubling ? std::max(2.0, std::log2(hosts))
                                                                                : 2.0;
          return (2 * ranks + between * hosts) * block;
        }
        default: return 2 * ranks * block;
      }
    case Op::broadcast:
    case Op::reduce: return (request.algorithm == Algorithm::scatter_gather ? 2 : 1) * ranks * block;
    case Op::gather:
    case Op::scatter: return (request.algorithm == Algorithm::binomial ? doublings : 1) * ranks * block;
    case Op::all_to_all: return (request.algorithm == Algorithm::bruck ? doublings : 1) * ranks * ranks * block;
    default: return ranks * ranks * block;
  }
}

/// In how many portions that goes through rings, were all of it to go through the one that takes least at a time.
double portions(const Request& request, std::size_t bytes, const Fabric& fabric) {
  double smallest = 0;
  for (const auto& level : fabric.network().levels) {
    if (level.ring.bytes > 0) {
      const auto most = static_cast<double>(level.ring.portion > 0 ? std::min(level.ring.portion, level.ring.bytes)
                                                                   : level.ring.bytes);
      smallest = smallest > 0 ? std::min(smallest, most) : most;
    }
  }
  return smallest > 0 ? moved_bytes(request, static_cast<double>(bytes)) / smallest : 0;
}

/// Building and simulating takes as long as that many messages: those of everyone to everybody share links by the
/// hundred, some programs speak of as many pieces as there are ranks, and long messages go in portions.
double effort(const Request& request, double messages, std::size_t bytes, const Fabric& fabric) {
  const auto ranks = static_cast<double>(request.ranks);
  const bool everyone = request.algorithm == Algorithm::direct || request.algorithm == Algorithm::one_shot;
  const auto pieces = static_cast<double>(shape_of(request).value().pieces);
  auto speaks = request.algorithm == Algorithm::hybrid ? ranks + pieces : pieces;
  if (request.algorithm == Algorithm::bruck) {
    speaks = 32 * ranks;  // every block is copied, at every step
  }
  return std::max({everyone ? 8 * messages : messages, ranks * speaks / 8, portions(request, bytes, fabric) / 4});
}

Price in_full(const Request& request, std::size_t bytes, double seconds, const Spent& spent, double messages, How how) {
  const auto moved = bus_bytes(request.op, request.ranks, static_cast<double>(bytes));
  return {.request = request,
          .seconds = seconds,
          .bus_bandwidth = seconds > 0 ? moved / seconds : 0,
          .messages = messages,
          .spent = spent,
          .how = how};
}

/// From plans with fewer chunks, as long each as those of the one asked for: how a pipeline fills and runs dry. Once it
/// is full, a tree takes as long for a chunk as the busiest rank or link; ranks that double get into each other's way,
/// so that what a chunk takes is the difference of two.
std::optional<Price> extrapolate(const Request& request, std::size_t bytes, const Fabric& fabric, const Estimate& known,
                                 double most) {
  const bool doubles = request.algorithm == Algorithm::recursive_doubling;
  const unsigned few = doubles ? 4 : 2;
  const auto all = doubles ? few + few / 2 : few;
  const auto effort_of_chunk = std::max(known.all_messages, portions(request, bytes, fabric) / 4) / request.chunks;
  if (!is_pipeline(request) || request.chunks <= few || effort_of_chunk * all > most) {
    return std::nullopt;
  }
  const auto run = [&](unsigned chunks) {
    auto fewer = request;
    fewer.chunks = chunks;
    return simulate(build(fewer).value(), bytes / request.chunks * chunks, fabric.network()).value();
  };
  const auto simulated = run(few);
  auto each = known.further_chunk;
  if (doubles) {
    each = std::max(each, (simulated.seconds - run(2).seconds) / 2);
  }
  const auto seconds = simulated.seconds + (request.chunks - few) * each;
  const auto spent = simulated.spent * (seconds / simulated.seconds);
  return in_full(request, bytes, seconds, spent, known.messages, How::extrapolated);
}

/// The network as estimates see it.
Fabric fabric_for(const Request& request, std::size_t bytes, const Network& network) {
  Fabric whole(network, request.ranks);
  if (network.processors.caches.empty() && network.processors.crowding.empty()) {
    return whole;
  }
  return {without_caches(network, footprint(request, bytes, whole), whole.ranks_of_host()), request.ranks};
}

Price price_checked(const Request& request, std::size_t bytes, const Network& network, const PriceOptions& options) {
  if (!can_estimate(request)) {
    const auto simulated = simulate(build(request).value(), bytes, network).value();
    return in_full(request, bytes, simulated.seconds, simulated.spent, 0, How::simulated);
  }
  const auto fabric = fabric_for(request, bytes, network);
  const auto known = estimate(request, bytes, fabric);
  if (effort(request, known.all_messages, bytes, fabric) <= options.most_simulated) {
    const auto simulated = simulate(build(request).value(), bytes, network).value();
    return in_full(request, bytes, simulated.seconds, simulated.spent, known.messages, How::simulated);
  }
  if (auto extended = extrapolate(request, bytes, fabric, known, options.most_simulated)) {
    return *extended;
  }
  return in_full(request, bytes, known.seconds, known.spent, known.messages, How::estimated);
}

Status check_both(const Request& request, const Network& network) {
  if (auto good = check(network, request.ranks); !good) {
    return good;
  }
  if (auto good = check(request); !good) {
    return good;
  }
  constexpr int kMostSimulated = 1024;
  if (!can_estimate(request) && request.ranks > kMostSimulated) {
    return Error{Code::unsupported, fmt::format("hybrid with a ring inside of hosts: priced up to {} ranks, not {}",
                                                kMostSimulated, request.ranks)};
  }
  return {};
}

/// There is no estimate for some: of those, the absurd are refused.
Status check_effort(const Request& request, std::size_t bytes, const Network& network, const PriceOptions& options) {
  const auto most = 8 * options.most_simulated;
  if (can_estimate(request) || effort(request, 0, bytes, Fabric(network, request.ranks)) <= most) {
    return {};
  }
  return Error{Code::unsupported,
               fmt::format("hybrid with a ring inside of hosts: {} bytes in {} chunks take too long to be simulated: "
                           "fewer bytes, ranks or chunks, or another algorithm inside",
                           bytes, request.chunks)};
}

/// All that a search goes through.
std::vector<Request> variants(const Request& request, std::size_t bytes, const Fabric& fabric,
                              const PriceOptions& options) {
  std::vector<Request> some{request};
  auto chunks = options.chunks;
  if (request.algorithm == Algorithm::hybrid && request.hosts.empty()) {
    some.clear();
    for (std::size_t i = 1; i < chunks.size() && !options.outer; ++i) {
      chunks.erase(chunks.begin() +
                   static_cast<std::ptrdiff_t>(i));  // there is enough else to try: every second will do
    }
    auto one = request;
    one.hosts = hosts_of(fabric);
    const auto all = static_cast<unsigned>(one.hosts.back().size());
    const auto fewest = options.leaders > 0 ? options.leaders : 1;
    const auto most = options.leaders > 0 ? options.leaders : all;
    std::vector outers{Algorithm::halving_doubling, Algorithm::recursive_doubling, Algorithm::double_tree,
                       Algorithm::ring, Algorithm::direct};
    if (options.outer) {
      outers = {*options.outer};
    }
    for (const auto outer : outers) {
      for (one.leaders = fewest; one.leaders <= most; one.leaders = one.leaders < most ? most : most + 1) {
        one.outer = outer;
        some.push_back(one);
      }
    }
  }
  std::vector<Request> all;
  for (auto& one : some) {
    for (const auto count : has_chunks(one) ? chunks : std::vector{1U}) {
      one.chunks = count;
      if (!check(one)) {
        continue;
      }
      const bool whole_lines = std::size_t{shape_of(one).value().pieces} * 64 <= bytes;
      if (count == chunks.front() || !has_chunks(one) || whole_lines) {
        all.push_back(one);
      }
    }
  }
  return all;
}

}  // namespace

std::string_view to_string(How how) {
  return how == How::simulated ? "simulated" : how == How::extrapolated ? "extrapolated" : "estimated";
}

std::vector<std::vector<Rank>> hosts_of(const Fabric& fabric) {
  std::vector<std::vector<Rank>> hosts(fabric.hosts());
  for (int rank = 0; rank < fabric.ranks(); ++rank) {
    hosts[fabric.host_of(Rank{rank})].push_back(Rank{rank});
  }
  return hosts;
}

std::string name_of(const Request& request) {
  if (request.algorithm != Algorithm::hybrid) {
    return std::string(to_string(request.algorithm));
  }
  return fmt::format("hybrid, {} leader{}, {}", request.leaders, request.leaders == 1 ? "" : "s",
                     to_string(request.outer));
}

Result<Price> price(const Request& request, std::size_t bytes_of_block, const Network& network,
                    const PriceOptions& options) {
  if (auto good = check_both(request, network); !good) {
    return good.error();
  }
  if (auto good = check_effort(request, bytes_of_block, network, options); !good) {
    return good.error();
  }
  return price_checked(request, bytes_of_block, network, options);
}

Result<Price> cheapest(const Request& request, std::size_t bytes_of_block, const Network& network,
                       const PriceOptions& options) {
  if (auto good = check(network, request.ranks); !good) {
    return good.error();
  }
  const Fabric fabric(network, request.ranks);
  auto first = request;
  if (first.algorithm == Algorithm::hybrid && first.hosts.empty()) {
    first.hosts = hosts_of(fabric);
    first.leaders = std::max(options.leaders, 1U);
    first.outer = options.outer.value_or(first.outer);
  }
  if (auto good = check_both(first, network); !good) {
    return good.error();
  }
  struct Guess {
    double seconds;
    double effort;
    Request request;
  };
  std::vector<Guess> guesses;
  for (auto& one : variants(request, bytes_of_block, fabric, options)) {
    const auto priced_on = fabric_for(one, bytes_of_block, network);
    const auto guess = can_estimate(one) ? estimate(one, bytes_of_block, priced_on) : Estimate{};
    guesses.push_back({guess.seconds, effort(one, guess.all_messages, bytes_of_block, priced_on), std::move(one)});
  }
  std::stable_sort(guesses.begin(), guesses.end(),
                   [](const Guess& a, const Guess& b) { return a.seconds < b.seconds; });
  if (guesses.empty()) {
    first.chunks = options.chunks.front();
    auto none = check(first);
    return none ? Error{Code::invalid_argument, "no such plan has so many pieces"} : none.error();
  }
  // What is nearly the quickest by the estimate may be the quickest: those that cost little are simulated.
  constexpr std::size_t kClose = 4;
  std::vector<Price> prices;
  for (std::size_t i = 0; i < std::min(kClose, guesses.size()); ++i) {
    if (i > 0 && guesses[i].effort > options.most_simulated / 16) {
      break;
    }
    const auto& one = guesses[i].request;
    if (auto good = check_effort(one, bytes_of_block, network, options); !good) {
      return good.error();
    }
    prices.push_back(price_checked(one, bytes_of_block, network, options));
  }
  return *std::min_element(prices.begin(), prices.end(),
                           [](const Price& a, const Price& b) { return a.seconds < b.seconds; });
}

}  // namespace tutti::plan
