#include "tutti/engine/mpi/mpi_links.h"

#include "tutti/engine/mpi/poll.h"

namespace tutti::engine::mpi {

MixedLinks::MixedLinks(const Wires& wires)
    : wires_(wires),
      near_(wires.hub),
      requests_(wires.library->api().make_requests()),
      far_(*requests_, wires.communicator, kPlanTag, wires.members.ranks()),
      sent_(static_cast<std::size_t>(wires.members.ranks())) {}

void MixedLinks::send(Rank to, ConstBlock bytes, std::uint32_t number) {
  ++sent_[to_index(to)].messages;
  sent_[to_index(to)].bytes += bytes.size();
  if (is_near(to)) {
    near_.send(wires_.members[to].local, bytes, number);
    return;
  }
  note(wires_.library->call([&] { return far_.send(to, bytes, number); }));
}

void MixedLinks::receive(Rank from, Block bytes, std::uint32_t number) {
  if (is_near(from)) {
    near_.receive(wires_.members[from].local, bytes, number);
    return;
  }
  note(wires_.library->call([&] { return far_.receive(from, bytes, number); }));
}

void MixedLinks::note(int error) { error_ = error_ == 0 ? error : error_; }

Status MixedLinks::look(std::vector<std::uint32_t>& over, const Doing& doing, bool& moved) {
  moved = near_.move(over);
  if (error_ == 0 && !far_.is_idle()) {
    note(wires_.library->call([&] { return far_.poll(over, moved); }));
  }
  return error_ == 0 ? Status() : Status(explain_failure(wires_.hub, *wires_.library, error_, far_.awaited(), doing));
}

void MixedLinks::forget() {
  near_.forget();
  wires_.library->drop(*requests_);
  far_.forget();
  error_ = 0;
}

Error MixedLinks::give_up(const Error& why) {
  forget();
  wires_.hub.fail(why);
  return why;
}

Status MixedLinks::advance(std::vector<std::uint32_t>& over, const Doing& doing, Deadline deadline) {
  if (far_.is_idle() && error_ == 0) {
    return near_.advance(over, doing, deadline);
  }
  Pause pause;
  for (;;) {
    bool moved = false;
    if (auto looked = look(over, doing, moved); !looked) {
      return give_up(looked.error());
    }
    if (moved) {
      return {};
    }
    if (!pause.next()) {
      continue;
    }
    if (const auto why = why_stop(doing, deadline)) {
      // A peer may have done its part just before it left: what is there counts.
      auto looked = look(over, doing, moved);
      return looked && moved ? Status() : Status(give_up(looked ? *why : looked.error()));
    }
  }
}

std::optional<Error> MixedLinks::why_stop(const Doing& doing, Deadline deadline) const {
  for (const auto peer : near_.awaited()) {
    if (auto lost = wires_.hub.lost(peer, doing.text())) {
      return lost;
    }
  }
  return reason_to_stop(wires_.hub, far_.awaited(), doing, deadline);
}

}  // namespace tutti::engine::mpi
