#include "cli/verdict.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

namespace tutti::cli {

std::string signal_text(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{} (signal {})", name, signal);
}

std::string end_text(int status) {
  return WIFSIGNALED(status) ? "was killed by " + signal_text(WTERMSIG(status))
                             : fmt::format("exited with code {}", WEXITSTATUS(status));
}

std::string describe(const RankEnd& end) {
  const std::string host = end.host.empty() ? "" : " on " + end.host;
  return fmt::format("rank {} (pid {}{}) {} after {:.1f} s", to_int(end.rank), end.pid, host, end_text(end.status),
                     end.after.count());
}

bool hard_death(const RankEnd& end) { return WIFSIGNALED(end.status) && WTERMSIG(end.status) != SIGABRT; }

std::optional<std::size_t> first_failure(const std::vector<RankEnd>& ends) {
  std::optional<std::size_t> blamed;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].good()) {
      continue;
    }
    if (hard_death(ends[i])) {
      return i;
    }
    if (!blamed || ends[i].lost_after < ends[*blamed].lost_after) {
      blamed = i;
    }
  }
  return blamed;
}

int exit_code(const RankEnd& end) {
  return WIFSIGNALED(end.status) ? 128 + WTERMSIG(end.status) : WEXITSTATUS(end.status);
}

std::string early_leavers(const std::vector<RankEnd>& ends, const RankEnd& blamed) {
  std::vector<int> ranks;
  for (const RankEnd& end : ends) {
    if (end.good() && end.after < blamed.after) {
      ranks.push_back(to_int(end.rank));
    }
  }
  if (ranks.empty()) {
    return {};
  }
  std::sort(ranks.begin(), ranks.end());
  constexpr std::size_t kNamed = 3;
  const std::vector<int> named(ranks.begin(),
                               ranks.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, ranks.size())));
  const std::string more = ranks.size() > kNamed ? fmt::format(" and {} more", ranks.size() - kNamed) : "";
  return fmt::format("before it, rank {}{} had left with code 0", fmt::join(named, ", "), more);
}

}  // namespace tutti::cli
