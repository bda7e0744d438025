#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "tutti/base/environment.h"
#include "tutti/engine/engine.h"

namespace tutti {

/// What `tutti bench --tune` found on machines like this one, from the user's file; read when it is first asked for.
/// Any thread.
class TuningCache {
 public:
  /// An empty path: nothing was found, ever.
  explicit TuningCache(std::string path, std::string log_level = "warning")
      : path_(std::move(path)), log_level_(std::move(log_level)) {}

  /// For groups of so many ranks, as a text that all of them are told by one. A file that makes no sense is warned of,
  /// and counts as empty.
  std::string text_for(int ranks);

 private:
  const std::string path_;
  const std::string log_level_;
  std::mutex mutex_;
  std::optional<plan::Tuning> tuning_;
  std::string machine_;
};

/// What this machine is called in such a file. Blocks for some milliseconds.
std::string this_machine();

/// Has the engine's operations run as was found quickest, then as the user prefers. `found` is what the first rank was
/// told by its cache. Throws when a preference cannot be.
void choose_ways(engine::Engine& engine, const std::string& found, const Preferences& preferences);

}  // namespace tutti
