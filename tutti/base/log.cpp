#include "tutti/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace tutti {

Log make_log(const std::string& name, const std::string& level) {
  auto log = std::make_shared<spdlog::logger>(name, std::make_shared<spdlog::sinks::stderr_sink_mt>());
  log->set_level(spdlog::level::from_str(level));
  log->set_pattern("%n: %l: %v");
  log->flush_on(spdlog::level::trace);
  return log;
}

Log silent_log() { return std::make_shared<spdlog::logger>("silent", std::make_shared<spdlog::sinks::null_sink_mt>()); }

void warn(const Log& log, const std::string& sentence) { log->warn(sentence); }

void debug(const Log& log, const std::string& sentence) { log->debug(sentence); }

}  // namespace tutti
