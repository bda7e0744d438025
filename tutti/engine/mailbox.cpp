#include "tutti/engine/mailbox.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace tutti::engine {
namespace {

std::string sending(Rank from, Rank to) {
  return fmt::format("send from rank {} to rank {}", to_int(from), to_int(to));
}

}  // namespace

Mailbox::Mailbox(Hub& hub)
    : hub_(hub),
      sends_(static_cast<std::size_t>(hub.ranks())),
      arriving_(static_cast<std::size_t>(hub.ranks())),
      aside_(static_cast<std::size_t>(hub.ranks())),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Mailbox::~Mailbox() {
  thread_.request_stop();
  memory::ring(hub_.mail_bell(hub_.rank()));
  thread_.join();
}

void Mailbox::send(Rank to, std::uint64_t tag, ConstBlock bytes, Deadline deadline, Done done) {
  {
    const std::scoped_lock lock(mutex_);
    new_sends_.emplace_back(to, Outgoing{.tag = tag, .bytes = bytes, .deadline = deadline, .done = std::move(done)});
  }
  submitted_.store(true, std::memory_order_release);
  memory::ring(hub_.mail_bell(hub_.rank()));
}

void Mailbox::receive(Rank from, std::uint64_t tag, Block bytes, Deadline deadline, Received received) {
  {
    const std::scoped_lock lock(mutex_);
    new_receives_.push_back({from, tag, bytes, deadline, std::move(received)});
  }
  submitted_.store(true, std::memory_order_release);
  memory::ring(hub_.mail_bell(hub_.rank()));
}

void Mailbox::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      move_until(stop);
    } catch (const std::exception& exception) {  // no memory to put a message aside, say; it must not end the process
      hub_.fail({Code::resource_exhausted,
                 fmt::format("messages of rank {} failed: {}", to_int(hub_.rank()), exception.what()), hub_.rank()});
    }
  }
  take_submissions();
  end_all({Code::aborted, fmt::format("rank {} closed the group with messages still under way", to_int(hub_.rank())),
           hub_.rank()});
}

void Mailbox::move_until(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    // In a broken group nothing moves: a ring may hold half a message, whose rest would pass for a header.
    const auto broken = hub_.broken();
    bool moved = take_submissions();
    if (broken) {
      end_all(*broken);
    } else {
      moved = advance() || moved;
      end_overdue();
    }
    if (moved) {
      continue;
    }
    if (!idle()) {
      end_lost();
    }
    // With nothing to move there is nothing to watch peers for; a submission or the end rings.
    const auto patience = memory::Patience{.spins = idle() ? 1 : hub_.patience().spins,
                                           .look_up = idle() ? std::chrono::seconds(1) : hub_.patience().look_up};
    (void)memory::wait_until(
        hub_.mail_bell(hub_.rank()), patience, next_deadline(),
        [&] {
          return submitted_.load(std::memory_order_acquire) || stop.stop_requested() ||
                 (!idle() && !hub_.broken() && advance());
        },
        [] { return true; });
  }
}

bool Mailbox::idle() const {
  return receives_.empty() &&
         std::all_of(sends_.begin(), sends_.end(), [](const auto& queue) { return queue.empty(); }) &&
         std::none_of(arriving_.begin(), arriving_.end(), [](const auto& arrival) { return arrival.has_value(); });
}

bool Mailbox::take_submissions() {
  if (!submitted_.exchange(false, std::memory_order_acq_rel)) {
    return false;
  }
  const std::scoped_lock lock(mutex_);
  for (auto& [to, outgoing] : new_sends_) {
    sends_[to_index(to)].push_back(std::move(outgoing));
  }
  new_sends_.clear();
  std::move(new_receives_.begin(), new_receives_.end(), std::back_inserter(receives_));
  new_receives_.clear();
  return true;
}

bool Mailbox::advance() {
  bool moved = match_aside();
  for (int peer = 0; peer < hub_.ranks(); ++peer) {
    moved = advance_send(Rank{peer}) || moved;
    moved = advance_receive(Rank{peer}) || moved;
  }
  return moved;
}

bool Mailbox::advance_send(Rank to) {
  auto& queue = sends_[to_index(to)];
  if (queue.empty()) {
    return false;
  }
  const auto ring = hub_.mailbox(hub_.rank(), to);
  bool moved = false;
  std::vector<Done> finished;
  while (!queue.empty()) {
    auto& message = queue.front();
    if (!message.header_written) {
      const Header header{message.tag, message.bytes.size()};
      if (ring.room() < sizeof header) {
        break;
      }
      ring.write(std::as_bytes(std::span(&header, 1)));
      message.header_written = true;
      moved = true;
    }
    const auto count = ring.write(message.bytes.subspan(message.moved));
    moved = moved || count != 0;
    message.moved += count;
    if (message.moved < message.bytes.size()) {
      break;
    }
    finished.push_back(std::move(message.done));
    queue.pop_front();
  }
  if (!moved) {
    return false;
  }
  memory::ring(hub_.mail_bell(to));
  for (const auto& done : finished) {
    done({});
  }
  return true;
}

std::optional<Mailbox::Incoming> Mailbox::take_receiver(Rank from, std::uint64_t tag) {
  const auto found = std::find_if(receives_.begin(), receives_.end(), [&](const Incoming& incoming) {
    return incoming.tag == tag && (incoming.from == from || incoming.from == kAnyRank);
  });
  if (found == receives_.end()) {
    return std::nullopt;
  }
  auto incoming = std::move(*found);
  receives_.erase(found);
  return incoming;
}

bool Mailbox::wanted(Rank from) const {
  return std::any_of(receives_.begin(), receives_.end(),
                     [&](const Incoming& incoming) { return incoming.from == from || incoming.from == kAnyRank; });
}

Status Mailbox::check_size(const Incoming& incoming, Rank from, std::size_t bytes) {
  if (incoming.bytes.size() == bytes) {
    return {};
  }
  return Error{Code::mismatch,
               fmt::format("rank {} sends {} bytes (tag {}) and rank {} expects {}", to_int(from), bytes, incoming.tag,
                           to_int(hub_.rank()), incoming.bytes.size()),
               from};
}

/// Gives messages that were put aside to receives that came after them.
bool Mailbox::match_aside() {
  bool moved = false;
  for (std::size_t from = 0; from < aside_.size(); ++from) {
    for (auto message = aside_[from].begin(); message != aside_[from].end();) {
      auto receiver = take_receiver(to_rank(from), message->tag);
      if (!receiver) {
        ++message;
        continue;
      }
      moved = true;
      const auto fits = check_size(*receiver, to_rank(from), message->aside.size());
      if (fits && !message->aside.empty()) {
        std::memcpy(receiver->bytes.data(), message->aside.data(), message->aside.size());
      }
      message = aside_[from].erase(message);
      receiver->received(fits ? Result<Rank>(to_rank(from)) : Result<Rank>(fits.error()));
      if (!fits) {
        hub_.fail(fits.error());  // as when the message is still in the ring
        return true;
      }
    }
  }
  return moved;
}

/// Looks at the header of the next message in the ring and decides where its bytes go; leaves it there when nobody
/// wants anything from that rank.
bool Mailbox::begin_arrival(Rank from) {
  const auto ring = hub_.mailbox(from, hub_.rank());
  if (ring.waiting() < sizeof(Header) || !wanted(from)) {
    return false;
  }
  Header header{};
  ring.peek(std::as_writable_bytes(std::span(&header, 1)));
  Arrival arrival{.tag = header.tag, .total = header.bytes, .moved = 0, .aside = {}, .receiver = std::nullopt};
  arrival.receiver = take_receiver(from, header.tag);
  if (arrival.receiver) {
    if (auto fits = check_size(*arrival.receiver, from, header.bytes); !fits) {
      arrival.receiver->received(fits.error());
      arrival.receiver.reset();
      hub_.fail(fits.error());  // the sender must learn of it, and the ring holds bytes that nobody can take
      return true;
    }
  } else {
    arrival.aside.resize(header.bytes);
  }
  ring.skip(sizeof header);
  arriving_[to_index(from)] = std::move(arrival);
  return true;
}

bool Mailbox::advance_receive(Rank from) {
  bool moved = false;
  auto& arriving = arriving_[to_index(from)];
  while (arriving || begin_arrival(from)) {
    moved = true;
    if (!arriving) {
      break;  // the message did not fit: the group is broken
    }
    const auto into = arriving->receiver ? arriving->receiver->bytes : Block(arriving->aside);
    const auto count =
        hub_.mailbox(from, hub_.rank()).read(into.subspan(arriving->moved, arriving->total - arriving->moved));
    arriving->moved += count;
    if (count != 0) {
      memory::ring(hub_.mail_bell(from));
    }
    if (arriving->moved < arriving->total) {
      return count != 0;
    }
    finish_arrival(from);
  }
  return moved;
}

void Mailbox::finish_arrival(Rank from) {
  auto arrival = std::move(*arriving_[to_index(from)]);
  arriving_[to_index(from)].reset();
  if (arrival.receiver) {
    arrival.receiver->received(from);
  } else {
    aside_[to_index(from)].push_back(std::move(arrival));
    match_aside();
  }
}

Deadline Mailbox::next_deadline() const {
  auto next = Deadline::never();
  const auto consider = [&](Deadline deadline) { next = deadline.at() < next.at() ? deadline : next; };
  for (const auto& queue : sends_) {
    std::for_each(queue.begin(), queue.end(), [&](const Outgoing& message) { consider(message.deadline); });
  }
  for (const auto& incoming : receives_) {
    consider(incoming.deadline);
  }
  for (const auto& arrival : arriving_) {
    if (arrival && arrival->receiver) {
      consider(arrival->receiver->deadline);
    }
  }
  return next;
}

/// One that is overdue breaks the group: half a message may be in the ring.
void Mailbox::end_overdue() {
  if (!next_deadline().expired()) {
    return;
  }
  for (std::size_t to = 0; to < sends_.size(); ++to) {
    if (!sends_[to].empty() && sends_[to].front().deadline.expired()) {
      hub_.fail({Code::timed_out, sending(hub_.rank(), to_rank(to)) + ": the deadline passed; it was not taken",
                 to_rank(to)});
    }
  }
  for (const auto& incoming : receives_) {
    if (incoming.deadline.expired()) {
      const auto who = incoming.from == kAnyRank ? "any rank" : fmt::format("rank {}", to_int(incoming.from));
      hub_.fail({Code::timed_out, fmt::format("receive by rank {} from {} (tag {}): the deadline passed; nothing came",
                                              to_int(hub_.rank()), who, incoming.tag)});
    }
  }
  hub_.fail({Code::timed_out, "a message was not finished by its deadline"});
}

/// Breaks the group when a rank is gone from which, or to which, something is still to move. A receive from any rank
/// waits for all of them: it ends when one died, or when none is left.
void Mailbox::end_lost() {
  const bool from_any = std::any_of(receives_.begin(), receives_.end(),
                                    [](const Incoming& incoming) { return incoming.from == kAnyRank; });
  std::optional<Error> gone;
  int left = 0;
  for (int peer = 0; peer < hub_.ranks() && !gone; ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    const bool sending_there = !sends_[index].empty();
    const bool waiting_for = arriving_[index].has_value() ||
                             std::any_of(receives_.begin(), receives_.end(),
                                         [&](const Incoming& incoming) { return incoming.from == Rank{peer}; });
    const auto lost =
        hub_.lost(Rank{peer}, sending_there ? sending(hub_.rank(), Rank{peer}) : sending(Rank{peer}, hub_.rank()));
    left += lost ? 1 : 0;
    const bool died = memory::presence(hub_.life(Rank{peer})) == memory::Presence::died;
    if (lost && (sending_there || waiting_for || (from_any && (died || left == hub_.ranks() - 1)))) {
      gone = lost;
    }
  }
  // What it sent before it went may have come in since: only a look that finds nothing counts.
  if (gone && !advance()) {
    hub_.fail(*gone);
  }
}

void Mailbox::end_all(const Error& error) {
  for (auto& queue : sends_) {
    for (auto& message : std::exchange(queue, {})) {
      message.done(error);
    }
  }
  for (auto& arrival : arriving_) {
    if (auto ended = std::exchange(arrival, std::nullopt); ended && ended->receiver) {
      ended->receiver->received(error);
    }
  }
  for (auto& incoming : std::exchange(receives_, {})) {
    incoming.received(error);
  }
}

}  // namespace tutti::engine
