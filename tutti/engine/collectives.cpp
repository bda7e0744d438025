#include "tutti/engine/collectives.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "tutti/kernels/stream.h"
#include "tutti/memory/line.h"

namespace tutti::engine {
namespace {

using memory::kLine;
using Kind = plan::Choice::Kind;

/// What is left to do when nobody else takes part: nothing, for a sum of one addend that lies where it is to be.
bool changes_nothing(const Call& call) {
  return (call.op == Op::all_reduce || call.op == Op::reduce) && call.reduce != kernels::ReduceOp::premul_sum &&
         !kernels::is_reproducible(call.reduce) && call.in[0].data() == call.out[0].data();
}

}  // namespace

Thresholds Thresholds::for_ranks(int ranks, bool crowded) {
  // Where ranks take turns on cores, meeting twice takes longer than reading all of it.
  if (crowded) {
    return {.one_shot = std::size_t{16} << 10, .one_shot_reachable = std::size_t{4} << 10};
  }
  // One shot reads every rank's whole input, two read and write a part of each: the more ranks, the sooner two win.
  // Measured with 2, 4, 8 and 16 ranks on 16 cores.
  return {.one_shot = ranks <= 2   ? std::size_t{65536}
                      : ranks <= 4 ? 2048U
                      : ranks <= 8 ? 1024U
                                   : 512U,
          .one_shot_reachable = ranks <= 2 ? std::size_t{2048} : 512U};
}

Slices::Slices(std::size_t total, std::size_t ranks) : bytes(total) {
  const auto lines = (total + kLine - 1) / kLine;
  each = (lines + ranks - 1) / ranks * kLine;
}

Collectives::Collectives(Hub& hub, const Reach& reach)
    : hub_(hub),
      reach_(reach),
      planned_(hub.rank(), hub.ranks()),
      links_(hub),
      sources_(ranks()),
      outs_(ranks()),
      factors_(ranks()) {
  set_thresholds();
}

void Collectives::set_thresholds() {
  thresholds_ = Thresholds::for_ranks(hub_.ranks(), hub_.is_crowded());
  thresholds_.one_shot = std::min(thresholds_.one_shot, hub_.layout().shelf_bytes);
  thresholds_.one_shot_reachable = std::min(thresholds_.one_shot_reachable, thresholds_.one_shot);
}

Status Collectives::choose(Op op, const OpChoices& choices) {
  for (const auto* some : {&choices.ordinary, &choices.symmetric}) {
    for (const auto& entry : some->entries()) {
      if (entry.choice && entry.choice->kind == Kind::library) {
        return Error{Code::unsupported, "these ranks share memory: there is no other library's collective to run"};
      }
    }
  }
  return planned_.choose(op, choices);
}

Status Collectives::run(const Call& call, Deadline deadline) {
  if (hub_.is_broken()) {
    return *hub_.broken();
  }
  if (auto good = check_call(call, me(), hub_.ranks()); !good) {
    return good;
  }
  if (ranks() == 1 && changes_nothing(call)) {
    return {};
  }
  auto status = run_checked(call, deadline);
  if (!status && hub_.is_broken()) {
    hub_.await_left(bytes_at_work(make_card(call)));
  }
  return status;
}

Status Collectives::run_checked(const Call& call, Deadline deadline) {
  const Running running{call, {make_card(call), ++sequence_, call.site}, deadline};
  write_notice(running);
  return run_noticed(running);
}

Status Collectives::run_noticed(const Running& running) {
  const auto& call = running.call;
  hub_.post(running.sequence());
  if (auto met = hub_.await_notices(running.doing, running.deadline); !met) {
    return met;
  }
  if (running.sequence() == 1) {
    hub_.count_cores();
    set_thresholds();
  }
  if (auto agreed = check_notices(running); !agreed) {
    return agreed;
  }
  if (call.op == Op::barrier) {
    return {};
  }
  const auto* const choice = choice_ != nullptr && all_chose_alike(running) ? choice_ : nullptr;
  if (choice != nullptr && choice->kind == Kind::plan) {
    return planned_.run(call, *choice, links_, running.doing, running.deadline);
  }
  chunk_ = hub_.layout().slot_bytes;
  if (choice != nullptr && choice->slice != 0) {
    chunk_ = std::min(chunk_, choice->slice);
  }
  if (all_staged(running)) {
    finish_one_shot(running);
    return {};
  }
  return all_reachable(running) ? run_direct(running) : run_staged(running);
}

const std::byte* Collectives::own_input(const Running& running, Rank taker) const {
  const auto& in = running.call.in;
  return in[in_per_rank(running.call.op) ? to_index(taker) : 0].data();
}

void Collectives::put(const Running& running, Block to, const std::byte* from) const {
  constexpr std::size_t kPastCaches = 4 << 20;
  if (to.data() == from) {
    return;
  }
  if (running.card().bytes >= kPastCaches) {
    kernels::stream_copy(to.data(), from, to.size());
  } else {
    copy_bytes(to.data(), from, to.size());
  }
}

void Collectives::lay_down(std::byte* to, const std::byte* from, std::size_t bytes) const {
  if (streams_) {
    kernels::stream_copy(to, from, bytes);
  } else {
    copy_bytes(to, from, bytes);
  }
}

void Collectives::write_notice(const Running& running) {
  const auto& call = running.call;
  auto& notice = hub_.notice(me(), running.sequence());
  // Made anew in its place: copying what was just written field by field would wait for it.
  ::new (&notice.card) Card(make_card(call));
  notice.streams = streams_ = trial_.streams(running.card().bytes);
  notice.in_place = Notice::kStaged;
  notice.out_place = Notice::kElsewhere;
  if (call.reduce == kernels::ReduceOp::premul_sum) {
    hub_.particulars(me(), running.sequence()).factor = call.factor;
  }
  if (!running.card().plain) {
    write_table(running);
  }
  if (call.op == Op::round_sums) {
    return write_summands(running);
  }
  choose_way(running);
  if (choice_ != nullptr && choice_->kind == Kind::plan) {
    notice.in_place = Notice::kElsewhere;  // nothing is laid down: it goes over links
    return;
  }
  std::size_t total = 0;
  for (const auto& block : call.in) {
    total += block.size();
  }
  if (choice_ != nullptr ? would_stage(total) : total <= thresholds_.one_shot_reachable) {
    stage_small(running, total);
    return;
  }
  const auto& first = call.in[0];
  const auto place = reach_.place_of(first.data(), running.card().plain ? total : first.size());
  if (choice_ == nullptr && !place && total <= thresholds_.one_shot) {
    stage_small(running, total);
    return;
  }
  notice.in_place = place.value_or(Notice::kElsewhere);
  if (!call.out.empty() && !out_per_rank(call.op)) {
    const auto& out = call.out[0];
    const bool in_place = out.data() == first.data() && out.size() == first.size();
    notice.out_place =
        in_place ? notice.in_place : reach_.place_of(out.data(), out.size()).value_or(Notice::kElsewhere);
  }
}

/// What was chosen for such a call, where it lies. What is a part of another operation goes the usual ways.
void Collectives::choose_way(const Running& running) {
  auto& notice = hub_.notice(me(), running.sequence());
  choice_ = nullptr;
  notice.plan = plan_ = 0;
  notice.symmetric = false;
  if (!planned_.any() || running.doing.whole != nullptr) {
    return;
  }
  choice_ = planned_.choice_for(running.card(), plan::Memory::ordinary);
  const auto* const symmetric = planned_.choice_for(running.card(), plan::Memory::symmetric);
  plan_ = choice_ == nullptr ? 0 : choice_->mark();
  if (const auto other = symmetric == nullptr ? 0 : symmetric->mark(); other != plan_) {
    plan_ = (plan_ * 0x9E3779B1U ^ other) | 1U;
    const auto& call = running.call;
    const ConstBlock block = call.in.empty() ? ConstBlock(call.out[0]) : call.in[0];
    notice.symmetric = reach_.place_of(block.data(), block.size()).has_value();
    choice_ = notice.symmetric ? symmetric : choice_;
  }
  notice.plan = plan_;
}

/// Whether what was chosen is to lay down so many bytes with the notice. Who has nothing always does.
bool Collectives::would_stage(std::size_t total) const {
  return total == 0 || (choice_->kind == Kind::at_once && total <= hub_.layout().shelf_bytes);
}

void Collectives::write_table(const Running& running) const {
  const auto& call = running.call;
  const auto table = hub_.table(me(), running.sequence());
  std::fill(table.in_bytes.begin(), table.in_bytes.end(), 0);
  std::fill(table.out_bytes.begin(), table.out_bytes.end(), 0);
  for (std::size_t i = 0; in_per_rank(call.op) && i < call.in.size(); ++i) {
    table.in_bytes[i] = call.in[i].size();
    table.in_places[i] = reach_.place_of(call.in[i].data(), call.in[i].size()).value_or(Notice::kElsewhere);
  }
  for (std::size_t i = 0; out_per_rank(call.op) && i < call.out.size(); ++i) {
    table.out_bytes[i] = call.out[i].size();
  }
}

Status Collectives::check_notices(const Running& running) {
  const auto& mine = running.card();
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto& card = hub_.notice(to_rank(rank), running.sequence()).card;
    if (!card.plain || !(card == mine)) {
      return explain_mismatch(running);
    }
  }
  // All cards first: whoever has something to explain meets everybody.
  return check_marks(running);
}

Status Collectives::check_marks(const Running& running) const {
  const auto first = hub_.notice(Rank{0}, running.sequence()).plan;
  for (std::size_t rank = 1; rank < ranks(); ++rank) {
    const auto theirs = hub_.notice(to_rank(rank), running.sequence()).plan;
    if (theirs != first) {
      return differing_marks(running.doing.text(), running.card().op, {hub_.name_of(Rank{0}), first},
                             {hub_.name_of(to_rank(rank)), theirs});
    }
  }
  return {};
}

/// The long way: calls that are not plain may fit each other all the same, and who does not fit is named. Every rank
/// comes here when one does, since all see the same notices.
Status Collectives::explain_mismatch(const Running& running) {
  std::vector<CallView> views;
  std::vector<std::vector<std::uint64_t>> lengths;  // of those that wrote no table
  lengths.reserve(2 * ranks());
  const auto even = [&](bool has, std::uint64_t bytes) {
    return std::span<const std::uint64_t>(lengths.emplace_back(ranks(), has ? bytes : 0));
  };
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto& card = hub_.notice(to_rank(rank), running.sequence()).card;
    const auto table = hub_.table(to_rank(rank), running.sequence());
    views.push_back({.card = card,
                     .in_bytes = card.plain ? even(in_per_rank(card.op), card.bytes) : table.in_bytes,
                     .out_bytes = card.plain ? even(out_per_rank(card.op), card.bytes) : table.out_bytes});
  }
  auto agreed = check_agreement(views, running.sequence());
  if (agreed) {
    return agreed;
  }
  return name_sites(running, views);
}

/// All ranks fail here, so there is time to ask where each of them made its call.
Status Collectives::name_sites(const Running& running, std::vector<CallView>& views) {
  auto& mine = hub_.particulars(me(), running.sequence());
  const auto& site = running.call.site;
  const auto text = site.file == nullptr ? std::string() : fmt::format("{}:{}", site.file, site.line);
  const auto kept = text.size() > sizeof mine.site ? text.substr(text.size() - sizeof mine.site) : text;
  mine.site_length = static_cast<std::uint32_t>(kept.size());
  std::memcpy(mine.site, kept.data(), kept.size());
  if (auto met = hub_.meet(running.doing, running.deadline); !met) {
    return met;
  }
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto& theirs = hub_.particulars(to_rank(rank), running.sequence());
    views[rank].site = {theirs.site, theirs.site_length};
  }
  return check_agreement(views, running.doing.number());
}

/// One rank's blocks may lie elsewhere, or not one behind the other, and something else be chosen for them: then
/// nothing is for anybody.
bool Collectives::all_chose_alike(const Running& running) const {
  const bool symmetric = hub_.notice(me(), running.sequence()).symmetric;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto& notice = hub_.notice(to_rank(rank), running.sequence());
    if (notice.plan != plan_ || notice.symmetric != symmetric) {
      return false;
    }
  }
  return true;
}

bool Collectives::all_staged(const Running& running) const {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    if (hub_.notice(to_rank(rank), running.sequence()).in_place != Notice::kStaged) {
      return false;
    }
  }
  return true;
}

/// Whether every rank can take what it needs from where it is. Decided from the notices: the same on every rank.
bool Collectives::all_reachable(const Running& running) const {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto& notice = hub_.notice(to_rank(rank), running.sequence());
    const bool from_root = running.card().op == Op::broadcast || running.card().op == Op::scatter;
    if (from_root && to_rank(rank) != running.card().root) {
      continue;  // nobody asks the others
    }
    if (notice.in_place >= Notice::kStaged) {
      return false;
    }
    const bool to_all = running.card().op == Op::all_reduce || running.card().op == Op::round_sums;
    if (to_all && notice.out_place >= Notice::kStaged) {
      return false;
    }
    if (!notice.card.plain && in_per_rank(running.card().op)) {
      const auto places = hub_.table(to_rank(rank), running.sequence()).in_places;
      if (std::any_of(places.begin(), places.end(), [](std::uint64_t place) { return place >= Notice::kStaged; })) {
        return false;
      }
    }
  }
  return true;
}

std::size_t Collectives::in_bytes(const Running& running, Rank owner, Rank taker) const {
  const auto& card = hub_.notice(owner, running.sequence()).card;
  if (!in_per_rank(card.op) || card.plain) {
    return card.bytes;
  }
  return hub_.table(owner, running.sequence()).in_bytes[to_index(taker)];
}

std::size_t Collectives::longest_block(const Running& running) const {
  std::size_t longest = 0;
  for (std::size_t owner = 0; owner < ranks(); ++owner) {
    for (std::size_t taker = 0; taker < (in_per_rank(running.card().op) ? ranks() : 1); ++taker) {
      longest = std::max(longest, in_bytes(running, to_rank(owner), to_rank(taker)));
    }
  }
  return longest;
}

kernels::Reduction Collectives::reduction(const Running& running) {
  kernels::Reduction reduction{.op = running.call.reduce, .dtype = running.call.dtype};
  if (reduction.op == kernels::ReduceOp::premul_sum) {
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      factors_[rank] = hub_.particulars(to_rank(rank), running.sequence()).factor;
    }
    reduction.factors = factors_;
  }
  return reduction;
}

}  // namespace tutti::engine
