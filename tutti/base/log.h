#pragma once

#include <memory>
#include <string>

namespace spdlog {
class logger;
}

namespace tutti {

/// Where a component says what a user should know. Lines go to standard error, whole, each with level and name.
/// Any thread. Nothing secret is ever passed to it. Who writes to it includes <spdlog/logger.h>: not every reader of a
/// header needs that.
using Log = std::shared_ptr<spdlog::logger>;

/// A log whose lines start with `name`; `level` is one of trace debug info warning error off.
Log make_log(const std::string& name, const std::string& level = "warning");

/// For rooms on LibTorch, whose {fmt} is not the one that spdlog was made with.
void warn(const Log& log, const std::string& sentence);
void debug(const Log& log, const std::string& sentence);

/// A log that drops everything.
Log silent_log();

}  // namespace tutti
