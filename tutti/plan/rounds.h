#pragma once

#include <span>
#include <vector>

#include "tutti/plan/costs.h"
#include "tutti/plan/network.h"
#include "tutti/plan/simulate.h"

namespace tutti::plan {

/// What something priced otherwise keeps the busiest processor and the busiest link busy for.
struct Busy {
  double processor = 0;
  double link = 0;
};

/// Prices what many ranks do at once, round after round, without following each event: ranks have clocks, the messages
/// of a round share the links that they cross, and a rank waits only for what it gets. For plans that are too long to
/// be simulated. One thread.
class Rounds {
 public:
  struct Message {
    Rank from;
    Rank to;
    double bytes = 0;
  };

  explicit Rounds(const Fabric& fabric);

  const Fabric& fabric() const { return fabric_; }

  /// Messages that are on their way at the same time. A rank sends them in this order. Of no bytes: none.
  void exchange(std::span<const Message> messages);
  /// All of these ranks add so many sources, or copy one, at the same time; `times` of that.
  void combine(std::span<const Rank> ranks, std::uint32_t sources, double bytes, double times = 1);
  /// Everybody goes on together after that, having spent it on something priced otherwise.
  void all_spend(const Spent& spent, double messages_of_a_rank, Busy busy = {});

  /// What follows, up to `end_chunks`, is done with one chunk after the other: the first takes as long as that chain,
  /// each next one as long as the busiest processor or link needs for one.
  void begin_chunks();
  void end_chunks(unsigned chunks);

  double seconds() const;
  /// Of that, what each chunk after the first took, of the chunks that took longest.
  double further_chunk() const { return further_chunk_; }
  /// Of the rank that is done last.
  const Spent& spent() const;
  /// Sent by the rank that sends most.
  double most_messages() const;
  /// Sent by all, about.
  double all_messages() const;

  /// How much longer a rank's work takes when so many ranks of its host work at the same time.
  double crowding(const Work& work, double ranks_of_host) const;

 private:
  struct Clock {
    double now = 0;
    double busy = 0;      // of its processor, since chunks began
    double reducing = 0;  // of that
    double messages = 0;
    double messages_before = 0;  // chunks began
    double line_out = 0;         // when what it sent is off its links, and what it was sent is
    double line_in = 0;
    std::uint64_t counted = 0;  // in which count of workers
    Spent spent;
  };

  struct Flight {
    double off = 0;    // the links
    double there = 0;  // at the receiver
    Spent spent;
  };

  void send(const Message& message, Flight& flight);
  void receive(const Message& message, const Flight& flight);
  void work(Rank rank, const Work& work, double times, double Spent::*what);
  void begin_count();
  /// Whether it is the first time in this count.
  bool count_worker(Rank rank);
  std::size_t host_of(Rank rank) const { return fabric_.host_of(rank); }
  std::size_t last() const;

  const Fabric& fabric_;
  std::vector<Clock> clocks_;
  double further_chunk_ = 0;
  std::vector<double> link_busy_;
  std::vector<double> host_busy_;  // its memory or cores
  double any_link_busy_ = 0;       // what was priced otherwise
  // Of one round.
  struct Crossing {
    double messages = 0;
    double bytes = 0;
  };
  std::vector<Crossing> crossing_;      // by link
  std::vector<std::uint32_t> workers_;  // by host: ranks that send, or receive, at the same time
  std::uint64_t count_ = 0;
  std::vector<std::size_t> order_;  // in which messages are taken
  std::vector<Flight> flights_;
};

}  // namespace tutti::plan
