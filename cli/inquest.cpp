#include "cli/inquest.h"

#include <algorithm>

#include "tutti/base/error.h"

namespace tutti::cli {

Inquest::Inquest(int world_size, const rendezvous::Server& server)
    : server_(server), ranks_(static_cast<std::size_t>(world_size)), ended_(ranks_.size(), false) {}

void Inquest::rank_started(Rank rank, pid_t pid, std::string_view host) {
  ranks_[to_index(rank)] = {.rank = rank, .pid = pid, .host = std::string(host)};
}

RankEnd Inquest::rank_ended(Rank rank, int status) {
  ended_[to_index(rank)] = true;
  RankEnd end = ranks_[to_index(rank)];
  end.status = status;
  end.after = since_begin(Deadline::Clock::now());
  ends_.push_back(end);
  return end;
}

std::optional<Inquest::Seconds> Inquest::left(Rank rank) const {
  const auto time = server_.left_at(rank);
  return time ? std::optional(since_begin(*time)) : std::nullopt;
}

std::vector<RankEnd> Inquest::dated_ends() const {
  std::vector<RankEnd> dated = ends_;
  for (RankEnd& end : dated) {
    end.lost_after = std::min(end.after, left(end.rank).value_or(end.after));
  }
  return dated;
}

bool Inquest::culprit_may_come() const {
  const auto ends = dated_ends();
  const auto suspect = first_failure(ends);
  if (!suspect) {
    return false;
  }
  for (std::size_t rank = 0; rank < ended_.size(); ++rank) {
    const auto gone = ended_[rank] ? std::nullopt : left(Rank{static_cast<int>(rank)});
    if (gone && *gone < ends[*suspect].lost_after) {
      return true;
    }
  }
  return false;
}

const RankEnd& Inquest::judge() {
  const auto ends = dated_ends();
  const auto suspect = first_failure(ends);
  require(suspect.has_value(), "judging needs a failure");
  blamed_ = ends[*suspect];
  return *blamed_;
}

std::string Inquest::verdict() const {
  require(blamed_.has_value(), "a verdict needs somebody to blame");
  const std::string leavers = early_leavers(ends_, *blamed_);
  return describe(*blamed_) + (leavers.empty() ? "" : "; " + leavers);
}

}  // namespace tutti::cli
