#pragma once

#include <cstdint>

#include <nlohmann/json_fwd.hpp>

namespace tutti::train {

/// What this process runs on and with, for the report. Blocks for some small files of the kernel's.
nlohmann::json describe_machine();

/// The most memory that this process has held so far; 0 where the kernel does not tell.
std::int64_t most_resident_bytes();

}  // namespace tutti::train
