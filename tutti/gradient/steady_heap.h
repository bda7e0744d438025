#pragma once

namespace tutti::gradient {

/// Lets the C library keep what a training step frees: the next one asks for the same, and memory that was given back
/// to the system in between costs a page fault for every 4 KiB. Once for the process, and not where the environment
/// says how it is to be (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_, GLIBC_TUNABLES with either).
void keep_freed_memory();

/// Whether the environment leaves that to us.
bool may_keep_freed_memory();

}  // namespace tutti::gradient
