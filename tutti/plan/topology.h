#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/error.h"

namespace tutti::plan {

/// One cache and the logical processors that share it.
struct Cache {
  int level = 0;
  std::size_t bytes = 0;
  std::vector<int> cpus;
};

/// One NUMA node: memory, and the logical processors next to it.
struct NumaNode {
  int number = 0;
  std::size_t bytes = 0;
  std::vector<int> cpus;
};

/// A physical core: its logical processors (several with hyper-threading), as the kernel numbers them.
using Core = std::vector<int>;

/// What this host is made of. Plain data: the functions over it are pure, so a test can make one up.
struct Topology {
  std::string model = {};       ///< of the processors, as they call themselves; empty when they do not
  int machine_cores = 0;        ///< physical cores that there are
  int packages = 0;             ///< processor sockets
  std::vector<Core> cores;      ///< those that this process may run on, neighbours next to each other
  std::vector<Cache> caches;    ///< data caches, by level, then by first processor
  std::vector<NumaNode> nodes;  ///< by number; at least one
};

/// Reads this host's topology, as far as this process is allowed to use it. Blocks for some milliseconds.
Result<Topology> read_topology();

/// How ranks are tied to processors.
enum class Bind { none, core, numa };

/// From "none", "core", "numa"; fails naming the three.
Result<Bind> parse_bind(std::string_view text);

/// Where one rank may run and take memory from; empty lists leave it to the kernel.
struct Placement {
  std::vector<int> cpus;
  std::vector<int> nodes;
  bool operator==(const Placement&) const = default;
};

/// One placement per rank. `core`: contiguous blocks of cores, as even as can be; with more ranks than cores they
/// share, round robin. `numa`: ranks in contiguous blocks over the nodes, each on all allowed cores of its node. Memory
/// always comes from the nodes of the rank's own processors.
std::vector<Placement> place_ranks(const Topology& topology, int ranks, Bind bind);

}  // namespace tutti::plan
