// What the machine itself has: processor and memory.
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "cli/doctor.h"
#include "cli/memory_bandwidth.h"
#include "cli/system_facts.h"
#include "tutti/plan/topology.h"

namespace tutti::cli {
namespace {

constexpr const char* kProcessor = "processor";
constexpr const char* kMemory = "memory";

Finding core_finding(const plan::Topology& topology) {
  const auto allowed = topology.cores.size();
  std::size_t threads = 0;
  for (const plan::Core& core : topology.cores) {
    threads += core.size();
  }
  const bool all = static_cast<int>(allowed) == topology.machine_cores;
  return {.topic = kProcessor,
          .name = "cores",
          .value = fmt::format("{} of {} allowed, {} threads", allowed, topology.machine_cores, threads),
          .meaning = all ? fmt::format("tutti run starts {} ranks unless told otherwise", usable_cores(topology))
                         : "an affinity mask or a cpuset keeps this process from the rest",
          .grade = all ? Grade::ok : Grade::note,
          .data = {{"allowed", allowed},
                   {"machine", topology.machine_cores},
                   {"threads", threads},
                   {"packages", topology.packages}}};
}

Finding quota_finding(const plan::Topology& topology) {
  const auto limit = cgroup_processors();
  const bool short_of = limit && *limit < static_cast<double>(topology.cores.size());
  return {.topic = kProcessor,
          .name = "cgroup quota",
          .value = limit ? fmt::format("{:.2f} processors", *limit) : "none",
          .meaning =
              short_of ? "less than the cores: ranks will be halted in mid-step; start fewer" : "ranks run unhindered",
          .grade = short_of ? Grade::warning : Grade::ok,
          .data = limit ? nlohmann::json(*limit) : nlohmann::json()};
}

Findings cache_findings(const plan::Topology& topology) {
  std::map<int, std::vector<const plan::Cache*>> by_level;
  for (const plan::Cache& cache : topology.caches) {
    by_level[cache.level].push_back(&cache);
  }
  Findings findings;
  for (const auto& [level, caches] : by_level) {
    const auto sharers = caches.front()->cpus.size();
    nlohmann::json data = nlohmann::json::array();
    for (const plan::Cache* cache : caches) {
      data.push_back({{"bytes", cache->bytes}, {"cpus", cache->cpus}});
    }
    findings.push_back(
        {.topic = kProcessor,
         .name = fmt::format("L{} cache", level),
         .value = fmt::format("{} x {}, by {} threads", caches.size(),
                              bytes_text(static_cast<double>(caches.front()->bytes)), sharers),
         .meaning = sharers > 1 ? "ranks that share it exchange data through it" : "private: each rank its own",
         .grade = Grade::ok,
         .data = data});
  }
  return findings;
}

Finding numa_finding(const plan::Topology& topology) {
  const auto count = topology.nodes.size();
  nlohmann::json data = nlohmann::json::array();
  for (const plan::NumaNode& node : topology.nodes) {
    data.push_back({{"number", node.number}, {"bytes", node.bytes}, {"cpus", node.cpus}});
  }
  return {.topic = kProcessor,
          .name = "NUMA nodes",
          .value = std::to_string(count),
          .meaning = count > 1 ? "use --bind, so that ranks keep to memory next to them" : "all memory is equally near",
          .grade = count > 1 ? Grade::note : Grade::ok,
          .data = data};
}

Finding amount_finding(double available) {
  const double total = memory_info("MemTotal");
  const auto limit = cgroup_memory();
  const bool limited = limit && *limit < total;
  return {
      .topic = kMemory,
      .name = "memory",
      .value = fmt::format("{} of {} free{}", bytes_text(available), bytes_text(total),
                           limited ? ", cgroup limit " + bytes_text(*limit) : ""),
      .meaning = limited ? "beyond the limit the kernel kills a rank" : "shared by all ranks of this host",
      .grade = limited ? Grade::note : Grade::ok,
      .data = {
          {"total", total}, {"available", available}, {"limit", limited ? nlohmann::json(*limit) : nlohmann::json()}}};
}

Finding bandwidth_finding(double available) {
  const auto topology = plan::read_topology();
  double largest_cache = 0;
  double caches = 0;
  for (const plan::Cache& cache : topology ? topology.value().caches : std::vector<plan::Cache>{}) {
    largest_cache = std::max(largest_cache, static_cast<double>(cache.bytes));
    caches += cache.level >= 3 ? static_cast<double>(cache.bytes) : 0;
  }
  // Beyond the caches where that fits into a second; else it says what was measured.
  const double bytes =
      std::clamp(2 * std::max(largest_cache, caches), 64e6, std::min(384e6, std::max(available / 8, 16e6)));
  const int threads = topology ? static_cast<int>(topology.value().cores.size()) : 1;
  const CopySpeed speed = measure_copy_speed(threads, static_cast<std::size_t>(bytes));
  const bool cached = 2 * bytes < 2 * std::max(largest_cache, caches);
  return {
      .topic = kMemory,
      .name = "copy speed",
      .value = fmt::format("{:.1f} GB/s one core, {:.1f} all", speed.one_core / 1e9, speed.all_cores / 1e9),
      .meaning = fmt::format("what moving gradients can reach{}", cached ? " (the cache helps: it is large)" : ""),
      .grade = Grade::ok,
      .data = {
          {"one_core", speed.one_core}, {"all_cores", speed.all_cores}, {"bytes", speed.bytes}, {"cores", threads}}};
}

Finding page_finding() {
  nlohmann::json huge = nlohmann::json::object();
  double reserved = 0;
  std::error_code error;
  namespace fs = std::filesystem;
  for (fs::directory_iterator entry("/sys/kernel/mm/hugepages", error), end; !error && entry != end;
       entry.increment(error)) {
    const double count = number_in(entry->path().string() + "/nr_hugepages").value_or(0);
    huge[entry->path().filename().string()] = count;
    reserved += count;
  }
  return {.topic = kMemory,
          .name = "page size",
          .value = fmt::format("{}, {} huge pages reserved", bytes_text(static_cast<double>(::sysconf(_SC_PAGESIZE))),
                               reserved),
          .meaning = "reserved ones are not needed",
          .grade = Grade::ok,
          .data = {{"bytes", ::sysconf(_SC_PAGESIZE)}, {"huge", huge}}};
}

Finding huge_page_finding(const char* name, const char* file, const char* good, const char* bad) {
  const auto line = first_line(std::string("/sys/kernel/mm/transparent_hugepage/") + file);
  const std::string setting = line ? chosen(*line) : "not in this kernel";
  const bool off = !line || setting == "never" || setting == "deny";
  return {.topic = kMemory,
          .name = name,
          .value = setting,
          .meaning = off ? bad : good,
          .grade = off ? Grade::note : Grade::ok,
          .data = setting};
}

}  // namespace

Findings examine_processor() {
  const auto topology = plan::read_topology();
  if (!topology) {
    return {{.topic = kProcessor,
             .name = "topology",
             .value = "unknown",
             .meaning = topology.error().message,
             .grade = Grade::failure}};
  }
  Findings findings{core_finding(topology.value()), quota_finding(topology.value()), numa_finding(topology.value())};
  Findings caches = cache_findings(topology.value());
  findings.insert(findings.end(), caches.begin(), caches.end());
  return findings;
}

Findings examine_memory() {
  const double available = memory_info("MemAvailable");
  return {amount_finding(available), bandwidth_finding(available), page_finding(),
          huge_page_finding("huge pages", "enabled", "large tensors cost fewer page faults",
                            "large tensors cost more page faults"),
          huge_page_finding("shared huge pages", "shmem_enabled", "symmetric memory can use them",
                            "symmetric memory has small pages; the first touch of a bucket is slower")};
}

}  // namespace tutti::cli
