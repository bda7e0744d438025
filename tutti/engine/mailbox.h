#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/engine/engine.h"
#include "tutti/engine/hub.h"

namespace tutti::engine {

/// Messages between two ranks, through the hub's rings. A thread of its own moves all of them forward at once, so that
/// any order of sends and receives on two ranks comes to an end. Messages of a tag that nobody asked for yet wait in
/// the ring; they are put aside only when a receive for another tag from the same rank needs what is behind them.
class Mailbox {
 public:
  explicit Mailbox(Hub& hub);
  ~Mailbox();

  /// Any thread; does not block.
  void send(Rank to, std::uint64_t tag, ConstBlock bytes, Deadline deadline, Done done);
  void receive(Rank from, std::uint64_t tag, Block bytes, Deadline deadline, Received received);

  /// Whether the calling thread is the mailbox's own.
  bool on_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  struct Outgoing {
    std::uint64_t tag;
    ConstBlock bytes;
    Deadline deadline;
    Done done;
    std::size_t moved = 0;
    bool header_written = false;
  };
  struct Incoming {
    Rank from;  // kAnyRank matches all
    std::uint64_t tag;
    Block bytes;
    Deadline deadline;
    Received received;
  };
  /// A message that is being taken out of a ring, or was put aside whole.
  struct Arrival {
    std::uint64_t tag = 0;
    std::size_t total = 0;
    std::size_t moved = 0;
    std::vector<std::byte> aside;      // where the bytes go when nobody asked for them yet
    std::optional<Incoming> receiver;  // where they go else
  };
  struct Header {
    std::uint64_t tag;
    std::uint64_t bytes;
  };

  void run(const std::stop_token& stop);
  void move_until(const std::stop_token& stop);
  bool take_submissions();
  bool advance();
  bool advance_send(Rank to);
  bool advance_receive(Rank from);
  bool begin_arrival(Rank from);
  bool match_aside();
  std::optional<Incoming> take_receiver(Rank from, std::uint64_t tag);
  bool wanted(Rank from) const;
  void finish_arrival(Rank from);
  Status check_size(const Incoming& incoming, Rank from, std::size_t bytes);
  void end_overdue();
  void end_lost();
  void end_all(const Error& error);
  Deadline next_deadline() const;
  bool idle() const;

  Hub& hub_;
  std::mutex mutex_;  // guards the two queues that other threads fill
  std::deque<std::pair<Rank, Outgoing>> new_sends_;
  std::deque<Incoming> new_receives_;
  std::atomic<bool> submitted_{false};

  // Below: the mailbox's thread alone.
  std::vector<std::deque<Outgoing>> sends_;  // by destination
  std::deque<Incoming> receives_;            // in the order of their calls
  std::vector<std::optional<Arrival>> arriving_;
  std::vector<std::deque<Arrival>> aside_;  // by sender
  std::jthread thread_;
};

}  // namespace tutti::engine
