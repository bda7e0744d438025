// What an operation of more ranks than this host's needs of them.
#include <new>

#include "tutti/engine/collectives.h"

namespace tutti::engine {

Status Collectives::run_part(const Call& call, const Part& part, Deadline deadline) {
  if (hub_.is_broken()) {
    return *hub_.broken();
  }
  const Running running{call, {make_card(call), ++sequence_, call.site, &part.whole}, deadline};
  only_ = part.only;
  write_notice(running);
  hub_.notice(me(), running.sequence()).plan = plan_ = part.mark;
  auto status = run_noticed(running);
  only_ = nullptr;
  if (!status && hub_.is_broken()) {
    hub_.await_left(bytes_at_work(running.card()));
  }
  return status;
}

Result<Collectives::Agreed> Collectives::agree(const Card& card, const Part& part, Deadline deadline) {
  const auto& whole = part.whole;
  const Call call{.op = card.op, .dtype = card.dtype, .reduce = card.reduce, .root = card.root, .site = whole.site};
  const Running running{call, {card, ++sequence_, whole.site, &whole}, deadline};
  auto& notice = hub_.notice(me(), running.sequence());
  ::new (&notice.card) Card(card);
  notice.streams = false;
  notice.in_place = part.amount;  // there is no input
  notice.out_place = Notice::kElsewhere;
  notice.plan = plan_ = part.mark;
  notice.symmetric = false;
  hub_.post(running.sequence());
  if (auto met = hub_.await_notices(running.doing, deadline); !met) {
    return met.error();
  }
  if (running.sequence() == 1) {
    hub_.count_cores();
    set_thresholds();
  }
  std::vector<CallView> views;
  bool same = true;
  Agreed agreed;
  const bool may_differ = in_per_rank(card.op) || out_per_rank(card.op);
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto& notice_of_rank = hub_.notice(to_rank(rank), running.sequence());
    const auto& theirs = notice_of_rank.card;
    views.push_back({.card = theirs, .in_bytes = {}, .out_bytes = {}, .rank = hub_.name_of(to_rank(rank))});
    agreed.amount += notice_of_rank.in_place;
    agreed.even = agreed.even && theirs.plain && theirs.bytes == card.bytes;
    same = same && theirs.op == card.op && theirs.dtype == card.dtype && theirs.reduce == card.reduce &&
           theirs.root == card.root && (may_differ || theirs.bytes == card.bytes);
  }
  // Everybody sees the same cards: all come here, or nobody does.
  if (!same) {
    auto named = name_sites(running, views);
    require(!named.ok(), "cards that differ are a mismatch");
    return named.error();
  }
  if (auto marked = check_marks(running); !marked) {
    return marked.error();
  }
  return agreed;
}

}  // namespace tutti::engine
