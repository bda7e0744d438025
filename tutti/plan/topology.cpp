#include "tutti/plan/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

namespace tutti::plan {
namespace {

struct TopologyDelete {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
struct BitmapDelete {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using OwnedTopology = std::unique_ptr<hwloc_topology, TopologyDelete>;
using OwnedBitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDelete>;

std::vector<int> numbers(hwloc_const_bitmap_t bitmap) {
  std::vector<int> result;
  for (int i = hwloc_bitmap_first(bitmap); i >= 0; i = hwloc_bitmap_next(bitmap, i)) {
    result.push_back(i);
  }
  return result;
}

/// The cgroup's processors, less those that the affinity mask (taskset, a batch system) takes away.
OwnedBitmap allowed_cpus(hwloc_topology* topology) {
  OwnedBitmap allowed(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology)));
  const OwnedBitmap bound(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_PROCESS) == 0 &&
      hwloc_bitmap_intersects(allowed.get(), bound.get()) != 0) {
    hwloc_bitmap_and(allowed.get(), allowed.get(), bound.get());
  }
  return allowed;
}

std::vector<int> allowed_numbers(hwloc_const_bitmap_t set, hwloc_const_bitmap_t allowed) {
  const OwnedBitmap both(hwloc_bitmap_alloc());
  hwloc_bitmap_and(both.get(), set, allowed);
  return numbers(both.get());
}

std::vector<Core> read_cores(hwloc_topology* topology, hwloc_const_bitmap_t allowed) {
  std::vector<Core> cores;
  // Some virtual machines tell processors but no cores: then each processor counts as one.
  const auto type = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) {
    Core core = allowed_numbers(object->cpuset, allowed);
    if (!core.empty()) {
      cores.push_back(std::move(core));
    }
  }
  return cores;
}

std::vector<Cache> read_caches(hwloc_topology* topology, hwloc_const_bitmap_t allowed) {
  std::vector<Cache> caches;
  for (const auto type : {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L4CACHE}) {
    for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) {
      auto cpus = allowed_numbers(object->cpuset, allowed);
      if (!cpus.empty()) {
        caches.push_back({.level = static_cast<int>(object->attr->cache.depth),
                          .bytes = static_cast<std::size_t>(object->attr->cache.size),
                          .cpus = std::move(cpus)});
      }
    }
  }
  return caches;
}

std::vector<NumaNode> read_nodes(hwloc_topology* topology, hwloc_const_bitmap_t allowed) {
  std::vector<NumaNode> nodes;
  for (hwloc_obj_t object = nullptr;
       (object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object)) != nullptr;) {
    nodes.push_back({.number = static_cast<int>(object->os_index),
                     .bytes = static_cast<std::size_t>(object->attr->numanode.local_memory),
                     .cpus = allowed_numbers(object->cpuset, allowed)});
  }
  return nodes;
}

std::string read_model(hwloc_topology* topology) {
  auto* const package = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PACKAGE, nullptr);
  const auto* const model = package == nullptr ? nullptr : hwloc_obj_get_info_by_name(package, "CPUModel");
  return model == nullptr ? "" : model;
}

std::vector<int> nodes_of(const Topology& topology, const std::vector<int>& cpus) {
  std::vector<int> nodes;
  for (const NumaNode& node : topology.nodes) {
    const bool local = std::any_of(cpus.begin(), cpus.end(), [&](int cpu) {
      return std::find(node.cpus.begin(), node.cpus.end(), cpu) != node.cpus.end();
    });
    if (local) {
      nodes.push_back(node.number);
    }
  }
  return nodes;
}

/// [first, last) of part `index` when `count` things are cut into `parts` contiguous pieces that differ by one at most.
std::pair<std::size_t, std::size_t> piece(std::size_t count, std::size_t parts, std::size_t index) {
  return {count * index / parts, count * (index + 1) / parts};
}

std::vector<int> core_block(const Topology& topology, std::size_t ranks, std::size_t rank) {
  const auto& cores = topology.cores;
  if (ranks > cores.size()) {
    return cores[rank % cores.size()];
  }
  std::vector<int> cpus;
  const auto [first, last] = piece(cores.size(), ranks, rank);
  for (std::size_t i = first; i < last; ++i) {
    cpus.insert(cpus.end(), cores[i].begin(), cores[i].end());
  }
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

std::vector<int> node_block(const Topology& topology, std::size_t ranks, std::size_t rank) {
  std::vector<const NumaNode*> usable;
  for (const NumaNode& node : topology.nodes) {
    if (!node.cpus.empty()) {
      usable.push_back(&node);
    }
  }
  return usable.empty() ? std::vector<int>{} : usable[rank * usable.size() / ranks]->cpus;
}

}  // namespace

Result<Topology> read_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) {
    return system_error("cannot prepare to read the topology", errno);
  }
  const OwnedTopology topology(raw);
  if (hwloc_topology_load(raw) != 0) {
    return system_error("cannot read the topology", errno);
  }
  const OwnedBitmap allowed = allowed_cpus(raw);
  Topology result;
  result.cores = read_cores(raw, allowed.get());
  result.model = read_model(raw);
  result.machine_cores = std::max(hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_CORE), static_cast<int>(result.cores.size()));
  result.packages = std::max(1, hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_PACKAGE));
  result.caches = read_caches(raw, allowed.get());
  result.nodes = read_nodes(raw, allowed.get());
  if (result.cores.empty()) {
    return Error{.code = Code::unsupported, .message = "the topology shows no core that this process may use"};
  }
  return result;
}

Result<Bind> parse_bind(std::string_view text) {
  if (text == "none") {
    return Bind::none;
  }
  if (text == "core") {
    return Bind::core;
  }
  if (text == "numa") {
    return Bind::numa;
  }
  return Error{.code = Code::invalid_argument,
               .message = fmt::format("'{}' is no way to bind: use core, numa or none", text)};
}

std::vector<Placement> place_ranks(const Topology& topology, int ranks, Bind bind) {
  require(ranks > 0 && !topology.cores.empty(), "placing needs ranks and cores");
  std::vector<Placement> placements(static_cast<std::size_t>(ranks));
  if (bind == Bind::none) {
    return placements;
  }
  for (std::size_t rank = 0; rank < placements.size(); ++rank) {
    Placement& placement = placements[rank];
    placement.cpus = bind == Bind::core ? core_block(topology, placements.size(), rank)
                                        : node_block(topology, placements.size(), rank);
    placement.nodes = nodes_of(topology, placement.cpus);
  }
  return placements;
}

}  // namespace tutti::plan
