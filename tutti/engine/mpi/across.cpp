#include "tutti/engine/mpi/across.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "tutti/engine/mpi/watch.h"

namespace tutti::engine::mpi {
namespace {

using Kind = plan::Choice::Kind;

std::vector<Rank> leaders_of(const Members& members, std::size_t local) {
  std::vector<Rank> leaders;
  for (const auto& host : members.by_host) {
    leaders.push_back(host[local]);
  }
  return leaders;
}

/// Where swapping whole sums between hosts takes less time than a greeting of its own before.
std::size_t longest_small_for(int hosts) {
  return hosts <= 2 ? std::size_t{256} << 10 : hosts <= 4 ? std::size_t{64} << 10 : std::size_t{16} << 10;
}

/// What every operation but a sum of all is run by, where nothing was chosen.
void set_defaults(Planned& planned, int ranks) {
  using plan::Algorithm;
  const auto choose = [&](Op op, Algorithm algorithm, unsigned chunks) {
    require(planned.choose(op, plan::Choice{.algorithm = algorithm, .chunks = chunks}).ok(), "defaults have plans");
  };
  choose(Op::reduce, Algorithm::tree, 4);
  choose(Op::broadcast, Algorithm::binomial, 1);
  choose(Op::all_gather, Algorithm::ring, 1);
  choose(Op::reduce_scatter, ranks <= 16 ? Algorithm::direct : Algorithm::ring, 1);
  choose(Op::all_to_all, Algorithm::direct, 1);
  choose(Op::gather, Algorithm::direct, 1);
  choose(Op::scatter, Algorithm::direct, 1);
}

void set_uneven(Planned& planned) {
  for (const auto op : {Op::all_gather, Op::reduce_scatter, Op::all_to_all, Op::gather, Op::scatter}) {
    require(planned.choose(op, plan::Choice{.algorithm = plan::Algorithm::direct}).ok(),
            "there are direct plans for blocks of any length");
  }
}

}  // namespace

Across::Across(const Wires& wires, Collectives& near)
    : wires_(wires),
      near_(near),
      links_(wires),
      library_(wires),
      longest_small_(longest_small_for(wires.members.hosts())),
      chosen_(wires.me, wires.members.ranks()),
      defaults_(wires.me, wires.members.ranks()),
      uneven_(wires.me, wires.members.ranks()),
      leader_links_(links_, leaders_of(wires.members, std::min(to_index(local()), wires.members.fewest() - 1))) {
  for (auto* const planned : {&chosen_, &defaults_, &uneven_}) {
    planned->set_hosts(wires.members.by_host);
  }
  set_defaults(defaults_, wires.members.ranks());
  set_uneven(uneven_);
  if (is_leader()) {
    exchange_ = std::make_unique<HostExchange>(wires_, leaders_of(wires_.members, 0), kLongestSmall);
  }
}

Deadline Across::later(Deadline deadline) {
  constexpr std::chrono::seconds kGrace{2};
  return deadline.is_never() ? deadline : Deadline::after(deadline.remaining() + kGrace);
}

Status Across::choose(Op op, const OpChoices& choices) {
  // Between hosts it makes no difference where tensors lie.
  const OpChoices everywhere(choices.ordinary);
  for (const auto& entry : everywhere.ordinary.entries()) {
    if (!entry.choice) {
      continue;
    }
    if (op != Op::all_reduce && (entry.choice->kind == Kind::at_once || entry.choice->kind == Kind::in_slices)) {
      return Error{Code::unsupported,
                   fmt::format("between hosts, {} can be chosen for all_reduce only: choose a plan for {} (ring, tree, "
                               "..., docs/plans.md), or own",
                               entry.choice->text(), to_string(op))};
    }
    if (entry.choice->kind == Kind::library && !LibraryCollectives::has(op)) {
      return Error{
          Code::unsupported,
          fmt::format("MPI's own collective can be chosen for all_reduce, broadcast, all_gather and all_to_all "
                      "only: choose a plan for {} (ring, tree, ..., docs/plans.md), or own",
                      to_string(op))};
    }
  }
  return chosen_.choose(op, everywhere);
}

Status Across::run(const Call& call, Deadline deadline) {
  const Doing doing{.card = make_card(call), .sequence = ++sequence_, .site = call.site};
  return run_checked({.call = call, .doing = doing, .deadline = deadline});
}

Status Across::to_the_end(const std::function<Status()>& sum) {
  try {
    auto status = sum();
    if (!status) {
      links_.forget();
    }
    return status;
  } catch (...) {
    links_.forget();
    throw;
  }
}

/// So many send each other the addends of reproducible sums themselves, which are a quarter of accumulators, or less.
constexpr int kFewRanks = 8;

Status Across::run_checked(const Running& running) {
  const auto& card = running.card();
  const auto* choice = chosen_.chosen_for(card);
  const bool library = choice != nullptr && choice->kind == Kind::library;
  const bool library_can = library && LibraryCollectives::can(running.call, card);
  // What a rank cannot do because of where its blocks lie, the others have to hear of; the rest all see alike.
  const bool blocks = in_per_rank(card.op) || out_per_rank(card.op);
  if (library && !library_can && !blocks) {
    choice = nullptr;
  }
  if (is_small(card, choice)) {
    return sum(running, choice);
  }
  Collectives::Agreed all;
  const bool even_here = card.plain && (!blocks || !library || library_can);
  if (auto agreed = agree(running, even_here, all); !agreed) {
    return agreed;
  }
  if (!all.even) {
    return run_uneven(running);
  }
  if (card.op == Op::barrier || card.bytes == 0) {
    return {};
  }
  if (card.op == Op::round_sums) {
    return to_the_end([&] { return round_sums(running, all.amount); });
  }
  if (choice != nullptr && choice->kind == Kind::library) {
    return library_.run(running.call, running.doing, running.deadline);
  }
  if (choice == nullptr && card.op == Op::all_reduce && kernels::is_reproducible(card.reduce) &&
      wires_.members.ranks() <= kFewRanks) {
    return defaults_.run(running.call, {.algorithm = plan::Algorithm::direct}, links_, running.doing, running.deadline);
  }
  if (card.op == Op::all_reduce && (choice == nullptr || choice->kind != Kind::plan)) {
    return sum(running, choice);
  }
  auto& planned = choice != nullptr ? chosen_ : defaults_;
  const auto* way = choice != nullptr ? choice : defaults_.chosen_for(card);
  require(way != nullptr, "there is a plan for every operation, whatever its size");
  return planned.run(running.call, *way, links_, running.doing, running.deadline);
}

std::uint32_t Across::own_mark(const Call& call) const {
  return call.op == Op::round_sums ? mark_of_sums(call) : chosen_.mark(call.op);
}

std::uint32_t Across::mark_of(const Doing& doing, std::uint32_t mark) {
  std::uint64_t hash = 0;
  const auto& card = doing.card;
  const bool may_differ = in_per_rank(card.op) || out_per_rank(card.op);
  for (const auto value : {static_cast<std::uint64_t>(card.op), static_cast<std::uint64_t>(card.dtype),
                           static_cast<std::uint64_t>(card.reduce), static_cast<std::uint64_t>(card.root),
                           may_differ ? 0 : card.bytes, doing.sequence, static_cast<std::uint64_t>(mark)}) {
    hash = (hash ^ value) * 0xFF51AFD7ED558CCD;
    hash ^= hash >> 32;
  }
  return static_cast<std::uint32_t>(hash) | 1U;
}

/// They call different things, or the same in different ways. Which, they say in full: whatever each of them began
/// with, this comes next for all.
Error Across::explain_near(const Running& running, const Error& first) {
  constexpr std::uint32_t kNothingChosen = 2;  // what was chosen has odd marks
  const auto mark = own_mark(running.call);
  const auto near = near_.agree(running.card(), {.whole = running.doing, .mark = mark == 0 ? kNothingChosen : mark},
                                running.deadline);
  return near ? first : near.error();
}

Result<Collectives::Agreed> Across::agree_near(const Running& running, const Card& card, std::uint32_t mark) {
  auto near = near_.agree(
      card,
      {.whole = running.doing, .mark = mark_of(running.doing, mark), .amount = near_.addends_in_reach(running.call)},
      running.deadline);
  if (!near && near.error().code == Code::mismatch) {
    return explain_near(running, near.error());
  }
  return near;
}

/// At home, between hosts, and the result at home again.
Status Across::agree(const Running& running, bool even_here, Collectives::Agreed& agreed) {
  const auto mark = own_mark(running.call);
  auto card = running.card();
  card.plain = even_here;
  const auto near = agree_near(running, card, mark);
  Status mine = near ? Status() : Status(near.error());
  if (!near && near.error().code != Code::mismatch) {
    return mine;
  }
  message_.resize(sizeof(Greeting));
  Greeting greeting{.sequence = running.doing.sequence,
                    .card = card,
                    .mark = mark,
                    .rank = to_int(me()),
                    .even = near && near.value().even,
                    .in_parts = links_.wants_parts(),
                    .amount = near ? near.value().amount : 0};
  if (exchange_) {
    mine = exchange_->run(greeting, 0, mine, {}, running.doing, running.deadline);
    if (!mine && mine.error().code != Code::mismatch) {
      return mine;
    }
    std::memcpy(message_.data(), exchange_->message(), sizeof greeting);
  }
  if (auto told = tell_verdict(running, 0, mine, message_.data()); !told) {
    return told;
  }
  const auto& verdict = *reinterpret_cast<const Greeting*>(message_.data());
  agreed = {.even = verdict.even, .amount = verdict.amount};
  links_.set_in_parts(verdict.in_parts);
  return {};
}

/// The leader's message with so many bytes of data behind it, to all ranks of this host; when it speaks of a failure,
/// the reason comes after. `mine` is the leader's.
Status Across::tell_verdict(const Running& running, std::size_t bytes, const Status& mine, std::byte* message) {
  if (near_ranks() == 1) {
    return mine;
  }
  const auto tell = [&](std::byte* data, std::size_t length) {
    Call call{.op = Op::broadcast, .dtype = kernels::DType::uint8};
    if (is_leader()) {
      call.in = {ConstBlock(data, length)};
    } else {
      call.out = {Block(data, length)};
    }
    return near_.run_part(call, {.whole = running.doing, .mark = 1}, later(running.deadline));
  };
  if (auto told = tell(message, sizeof(Greeting) + bytes); !told) {
    return told;
  }
  if (!reinterpret_cast<const Greeting*>(message)->failed) {
    return {};
  }
  std::string text = is_leader() ? pack(mine.error()) : std::string();
  text.resize(HostExchange::kRoomForErrors);
  if (auto told = tell(reinterpret_cast<std::byte*>(text.data()), text.size()); !told) {
    return told;
  }
  return unpack_error(text.substr(0, text.find('\0')));
}

/// Lengths differ: every rank tells every other what it has for whom, and what it expects.
Status Across::exchange_tables(const Running& running) {
  const auto ranks = static_cast<std::size_t>(wires_.members.ranks());
  const auto& call = running.call;
  const auto width = sizeof(Card) / sizeof(std::uint64_t) + 2 * ranks;
  std::vector<std::uint64_t> tables(width * ranks);
  auto* const mine = tables.data() + to_index(me()) * width;
  std::memcpy(mine, &running.card(), sizeof(Card));
  for (std::size_t i = 0; in_per_rank(call.op) && i < call.in.size(); ++i) {
    mine[sizeof(Card) / sizeof(std::uint64_t) + i] = call.in[i].size();
  }
  for (std::size_t i = 0; out_per_rank(call.op) && i < call.out.size(); ++i) {
    mine[sizeof(Card) / sizeof(std::uint64_t) + ranks + i] = call.out[i].size();
  }
  const auto bytes = width * sizeof(std::uint64_t);
  Call gather{.op = Op::all_gather, .dtype = kernels::DType::uint64};
  gather.in = {ConstBlock(reinterpret_cast<std::byte*>(mine), bytes)};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    gather.out.push_back({reinterpret_cast<std::byte*>(tables.data() + rank * width), bytes});
  }
  const Doing part{.card = make_card(gather), .sequence = running.doing.sequence, .whole = &running.doing};
  if (auto gathered = defaults_.run(gather, *defaults_.chosen_for(part.card), links_, part, running.deadline);
      !gathered) {
    return gathered;
  }
  std::vector<CallView> views;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto* const table = tables.data() + rank * width;
    Card card;
    std::memcpy(static_cast<void*>(&card), table, sizeof card);
    const auto* const lengths = table + sizeof(Card) / sizeof(std::uint64_t);
    views.push_back({.card = card, .in_bytes = {lengths, ranks}, .out_bytes = {lengths + ranks, ranks}});
  }
  return check_agreement(views, running.doing.sequence);
}

Status Across::run_uneven(const Running& running) {
  if (auto agreed = exchange_tables(running); !agreed) {
    return agreed;
  }
  auto doing = running.doing;
  doing.card.plain = false;
  doing.whole = &running.doing;
  return uneven_.run(running.call, *uneven_.chosen_for(doing.card), links_, doing, running.deadline);
}

}  // namespace tutti::engine::mpi
