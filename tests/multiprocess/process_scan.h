#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::tests {

/// All processes that there are.
std::vector<pid_t> all_processes();

/// Processes, zombies not counted, whose environment holds this text; not the calling one.
std::vector<pid_t> processes_with(const std::string& text);

/// "pid 12: sh -c ...; pid 13: ..."
std::string describe_processes(const std::vector<pid_t>& pids);

/// Whole text of a file, zero bytes and all; empty when it cannot be read.
std::string file_text(const std::string& path);

/// Parent of a process; 0 when it is gone.
pid_t parent_of(pid_t pid);

/// The state letter of a process: R, S, T (stopped), Z, ...; 0 when it is gone.
char state_of(pid_t pid);

/// Whether any process has this file open.
bool somebody_has_open(std::uint64_t device, std::uint64_t inode);

}  // namespace tutti::tests
