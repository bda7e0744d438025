#pragma once

#include <cstdint>

namespace tutti {

/// A number that is another one in a forked child than it was in its parent. Costs a load, where a process id costs a
/// system call.
std::uint64_t process_generation();

}  // namespace tutti
