#pragma once

#include <string>
#include <vector>

#include "tutti/plan/price.h"

namespace tutti::plan {

/// Which algorithm takes least, over sizes and numbers of ranks, and what all take over sizes at one number of ranks.
struct PriceMap {
  struct Cell {
    Algorithm winner = Algorithm::ring;
    double seconds = 0;  ///< 0: none of them has a price
  };

  std::string title;
  Op op = Op::all_reduce;
  std::vector<std::size_t> bytes;        ///< across
  std::vector<int> ranks;                ///< up
  std::vector<std::vector<Cell>> cells;  ///< by ranks, by bytes
  int asked_ranks = 1;                   ///< of what follows
  std::vector<Algorithm> algorithms;
  std::vector<std::vector<double>> seconds;  ///< by algorithm, by bytes; 0 where it has no price
};

/// The algorithms that are worth a comparison on that network: no hybrid where hosts have one rank, or there is one
/// host.
std::vector<Algorithm> comparable(Op op, const Fabric& fabric);

/// The cheapest of the requests, which are of one operation and number of ranks and differ in the algorithm. Numbers of
/// ranks are powers of two up to that one, and that; sizes are powers of four from 1 KiB to 1 GiB. Coarser than a
/// table: few numbers of chunks are tried, and only short plans simulated. Errors as of `check`.
Result<PriceMap> map_prices(const std::vector<Request>& requests, const Network& network,
                            const PriceOptions& options = {});

/// As an SVG: the map, and beside it time by size for each algorithm.
std::string draw(const PriceMap& map);

/// "25 MiB", "1.5 us": for people.
std::string bytes_text(double bytes);
std::string seconds_text(double seconds);

}  // namespace tutti::plan
