#include "tutti/engine/mpi/host_exchange.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "tutti/engine/mpi/poll.h"
#include "tutti/engine/mpi/watch.h"

namespace tutti::engine::mpi {
namespace {

constexpr std::uint32_t kSend = 0;
constexpr std::uint32_t kReceive = 1;

}  // namespace

bool Greeting::agrees(const Greeting& other) const {
  const bool may_differ = in_per_rank(card.op) || out_per_rank(card.op);
  return sequence == other.sequence && mark == other.mark && card.op == other.card.op &&
         card.dtype == other.card.dtype && card.reduce == other.card.reduce && card.root == other.card.root &&
         (may_differ || card.bytes == other.card.bytes);
}

HostExchange::HostExchange(const Wires& wires, std::vector<Rank> leaders, std::size_t longest)
    : wires_(wires),
      leaders_(std::move(leaders)),
      me_(wires.members[wires.me].host),
      requests_(wires.library->api().make_requests()),
      mine_(sizeof(Greeting) + std::max(longest, kRoomForErrors)),
      theirs_(mine_.size()) {
  static_assert(sizeof(Greeting) % 16 == 0);
}

void HostExchange::fail_mine(const Error& error) {
  auto text = mpi::pack(error);
  text.resize(std::min(text.size(), kRoomForErrors));
  auto& greeting = header(mine_);
  greeting.failed = true;
  greeting.bytes = static_cast<std::uint32_t>(text.size());
  std::memcpy(data(), text.data(), text.size());
}

void HostExchange::pack_mine(const Greeting& greeting, std::size_t bytes, const Status& own) {
  header(mine_) = greeting;
  header(mine_).bytes = static_cast<std::uint32_t>(bytes);
  if (!own) {
    fail_mine(own.error());
  }
}

Status HostExchange::talk(int host, Way way, const Doing& doing, Deadline deadline) {
  const auto peer = leaders_[static_cast<std::size_t>(host)];
  const int error = wires_.library->call([&] {
    int begun = way == Way::send ? 0
                                 : requests_->receive(wires_.communicator, to_int(peer), kGreetingTag, theirs_.data(),
                                                      theirs_.size(), kReceive);
    if (begun == 0 && way != Way::receive) {
      begun = requests_->send(wires_.communicator, to_int(peer), kGreetingTag, mine_.data(),
                              sizeof(Greeting) + header(mine_).bytes, kSend);
    }
    return begun;
  });
  auto status = finish_all(wires_.hub, *wires_.library, *requests_, error, {peer}, doing, deadline);
  if (!status) {
    wires_.library->drop(*requests_);
  }
  return status;
}

Error HostExchange::explain(const Greeting& first, const Greeting& second) const {
  auto compared = second;
  compared.mark = first.mark;
  if (compared.sequence == first.sequence && compared.agrees(first)) {
    return differing_marks(describe(first.card, first.sequence), first.card.op, {Rank{first.rank}, first.mark},
                           {Rank{second.rank}, second.mark});
  }
  return {Code::mismatch,
          fmt::format("ranks call different things: rank {} calls {}, rank {} calls {}", first.rank,
                      describe(first.card, first.sequence), second.rank, describe(second.card, second.sequence)),
          Rank{second.rank}};
}

/// Both sides come to the same: the lower host's words and numbers count first.
void HostExchange::merge(int host, const kernels::Reduction& reduction) {
  auto& mine = header(mine_);
  const auto& theirs = header(theirs_);
  const bool first = me_ < host;
  if (mine.failed || theirs.failed) {
    if (theirs.failed && (!mine.failed || !first)) {
      std::memcpy(mine_.data(), theirs_.data(), sizeof(Greeting) + theirs.bytes);
    }
    return;
  }
  if (!mine.agrees(theirs)) {
    fail_mine(first ? explain(mine, theirs) : explain(theirs, mine));
    return;
  }
  const bool even =
      mine.even && theirs.even && mine.card.plain && theirs.card.plain && mine.card.bytes == theirs.card.bytes;
  if (!first) {
    mine.card = theirs.card;
    mine.rank = theirs.rank;
  }
  mine.even = even;
  mine.in_parts = mine.in_parts || theirs.in_parts;
  mine.amount = std::max(mine.amount, theirs.amount);
  if (mine.bytes != 0) {
    const std::byte* const other = theirs_.data() + sizeof(Greeting);
    const std::array<const std::byte*, 2> sources{first ? data() : other, first ? other : data()};
    std::byte* const out = data();
    kernels::reduce(reduction, sources, {&out, 1}, kernels::count_of(reduction.dtype, mine.bytes));
  }
}

Status HostExchange::run(Greeting& greeting, std::size_t bytes, const Status& own, const kernels::Reduction& reduction,
                         const Doing& doing, Deadline deadline) {
  pack_mine(greeting, bytes, own);
  const auto hosts = static_cast<int>(leaders_.size());
  const auto paired = static_cast<int>(std::bit_floor(leaders_.size()));
  const bool is_extra = me_ >= paired;
  const bool has_extra = me_ + paired < hosts;
  if (is_extra) {
    if (auto told = talk(me_ - paired, Way::send, doing, deadline); !told) {
      return told;
    }
    if (auto heard = talk(me_ - paired, Way::receive, doing, deadline); !heard) {
      return heard;
    }
    std::swap(mine_, theirs_);
  } else {
    if (has_extra) {
      if (auto heard = talk(me_ + paired, Way::receive, doing, deadline); !heard) {
        return heard;
      }
      merge(me_ + paired, reduction);
    }
    for (int bit = 1; bit < paired; bit *= 2) {
      if (auto swapped = talk(me_ ^ bit, Way::swap, doing, deadline); !swapped) {
        return swapped;
      }
      merge(me_ ^ bit, reduction);
    }
    if (has_extra) {
      if (auto told = talk(me_ + paired, Way::send, doing, deadline); !told) {
        return told;
      }
    }
  }
  greeting = header(mine_);
  if (greeting.failed) {
    return unpack_error({reinterpret_cast<const char*>(data()), greeting.bytes});
  }
  return {};
}

}  // namespace tutti::engine::mpi
