#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tutti/plan/topology.h"

namespace tutti::cli {

/// First line of a small file of the kernel's; nullopt when it cannot be read.
std::optional<std::string> first_line(const std::string& path);

/// The same as a number; nullopt when it is none ("max").
std::optional<double> number_in(const std::string& path);

/// Of "always [madvise] never" the one in brackets; the whole text when there are none. Pure.
std::string chosen(const std::string& choices);

/// This process's cgroup folders that control something ("cpu", "memory"), its own first, then its parents': a limit of
/// any of them counts. Both versions of cgroups.
std::vector<std::string> cgroup_folders(const std::string& controller);

/// The least of the limits that `cgroup_folders` hold, in processors, or bytes; nullopt when nothing limits.
std::optional<double> cgroup_processors();
std::optional<double> cgroup_memory();

/// Bytes that /proc/meminfo has under this name ("MemTotal"); 0 when it has none.
double memory_info(const std::string& name);

/// Bytes that ranks here could have at most: what is free or could be freed, no more than a cgroup's limit, and swap.
/// Infinity where the kernel does not say.
double memory_for_ranks();

/// Cores that ranks here can keep busy: those allowed, or fewer where a cgroup's quota gives less.
int usable_cores(const plan::Topology& topology);

/// Where a program is, by PATH; empty when it is nowhere.
std::string find_program(const std::string& name);

/// First line that a command prints within a few seconds; empty when there is none.
std::string first_line_of_command(const std::string& command);

}  // namespace tutti::cli
