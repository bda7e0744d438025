#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tutti/base/rank.h"

namespace tutti::cli {

/// How one rank ended.
struct RankEnd {
  Rank rank{0};
  pid_t pid = 0;
  std::string host = {};                   ///< empty on one host
  int status = 0;                          ///< as waitpid() tells it
  std::chrono::duration<double> after{0};  ///< since the job began
  /// When the others may have noticed: it ended, or left the store before that.
  std::chrono::duration<double> lost_after = after;

  bool good() const { return status == 0; }
};

/// "SIGSEGV (signal 11)"
std::string signal_text(int signal);

/// "was killed by SIGSEGV (signal 11)", "exited with code 3", for a status as waitpid() tells it.
std::string end_text(int status);

/// "rank 1 (pid 4711) was killed by SIGSEGV (signal 11) after 3.2 s", "rank 1 (pid 4711 on b) exited with code 3 ..."
std::string describe(const RankEnd& end);

/// Ended by a signal that can only be its own cause or someone else's, never a reaction to another rank's failure.
/// Not SIGABRT: a rank that learns of a lost peer and has no handler for that ends so.
bool hard_death(const RankEnd& end);

/// Which of the bad ends to blame, of those seen shortly after each other: a hard death before any other, then the one
/// that was lost to the others first. Nullopt when all are good. `ends` are in the order in which they were seen.
std::optional<std::size_t> first_failure(const std::vector<RankEnd>& ends);

/// What the launcher exits with for this end: the code, or 128 + the signal.
int exit_code(const RankEnd& end);

/// Ranks that had left with code 0 before the one to blame ended, as a sentence: they may be why. Empty when none.
std::string early_leavers(const std::vector<RankEnd>& ends, const RankEnd& blamed);

}  // namespace tutti::cli
