#include "tutti/plan/price_map.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::plan {
namespace {

PriceOptions coarse(PriceOptions options) {
  options.most_simulated = 4'000;
  if (options.chunks.size() > 1) {
    options.chunks = {1, 8, 64};
  }
  return options;
}

std::string with_unit(double value, const char* const* units, double step, int last) {
  int unit = 0;
  while (value >= step && unit < last) {
    value /= step;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 && value != static_cast<int>(value) ? 1 : 0, units[unit]);
}

}  // namespace

std::string bytes_text(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return with_unit(bytes, kUnits, 1024, 4);
}

std::string seconds_text(double seconds) {
  static constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  auto value = seconds * 1e9;
  int unit = 0;
  while (value >= 1000 && unit < 3) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, kUnits[unit]);
}

std::vector<Algorithm> comparable(Op op, const Fabric& fabric) {
  auto algorithms = algorithms_for(op);
  const bool two_levels = fabric.hosts() > 1 && fabric.ranks_of_group(0) > 1;
  std::erase_if(algorithms, [&](Algorithm algorithm) { return algorithm == Algorithm::hybrid && !two_levels; });
  return algorithms;
}

Result<PriceMap> map_prices(const std::vector<Request>& requests, const Network& network, const PriceOptions& asked) {
  const auto op = requests.front().op;
  const auto ranks = requests.front().ranks;
  PriceMap map{.title = network.name,
               .op = op,
               .bytes = {},
               .ranks = {},
               .cells = {},
               .asked_ranks = ranks,
               .algorithms = {},
               .seconds = std::vector<std::vector<double>>(requests.size())};
  for (const auto& request : requests) {
    map.algorithms.push_back(request.algorithm);
  }
  for (std::size_t bytes = 1 << 10; bytes <= std::size_t{1} << 30; bytes *= 4) {
    map.bytes.push_back(bytes);
  }
  for (int count = 2; count < ranks; count *= 2) {
    map.ranks.push_back(count);
  }
  map.ranks.push_back(ranks);
  const auto options = coarse(asked);
  for (const auto count : map.ranks) {
    auto& row = map.cells.emplace_back();
    if (auto good = check(network, count); !good) {
      return good.error();
    }
    const auto here = comparable(op, Fabric(network, count));
    for (const auto bytes : map.bytes) {
      auto& cell = row.emplace_back();
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (requests.size() > 1 && std::find(here.begin(), here.end(), map.algorithms[i]) == here.end()) {
          continue;
        }
        auto request = requests[i];
        request.ranks = count;
        const auto one = cheapest(request, bytes, network, options);
        if (!one && count == ranks && one.error().code != Code::unsupported) {
          return one.error();
        }
        if (count == ranks) {
          map.seconds[i].push_back(one ? one.value().seconds : 0);
        }
        if (!one) {
          continue;  // so few ranks have no such plan, or so many bytes take too long to be priced
        }
        if (cell.seconds == 0 || one.value().seconds < cell.seconds) {
          cell = {map.algorithms[i], one.value().seconds};
        }
      }
    }
  }
  return map;
}

}  // namespace tutti::plan
