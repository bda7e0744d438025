#pragma once

#include <vector>

#include "tutti/plan/activities.h"
#include "tutti/plan/costs.h"
#include "tutti/plan/events.h"
#include "tutti/plan/piece_bytes.h"
#include "tutti/plan/simulate.h"
#include "tutti/plan/touched.h"
#include "tutti/plan/waiting.h"

namespace tutti::plan {

/// One plan that is simulated: what `simulate` is made of. Once, by one thread.
class Simulation {
 public:
  /// By link, the bytes that may pass at once.
  using Savings = std::vector<double>;

  /// All three outlive it. Links begin with what they have `saved`, and save on while ranks meet; the ranks of a host
  /// begin so many seconds late (none given: all at once).
  Simulation(const Plan& plan, std::size_t bytes_of_block, const Fabric& fabric, const Savings& saved,
             std::vector<double> late = {});

  Result<Simulated> run();
  /// What they have when it is over.
  Savings saved();

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// What a step does that takes time: it may have to wait for its rank, then one after the other, and combines and
  /// receives have work alone; what goes through a ring may do so several times.
  enum class Phase : std::uint8_t { late, work, transfer, flight, asking, answer };

  /// Of a message that is longer than what goes unasked, at either end: `wanted` is what its processor has to do next,
  /// ask for the rest or take in that it is asked for.
  enum class Answer : std::uint8_t { none, wanted, under_way, there };

  struct State {
    const Step* step = nullptr;
    std::size_t bytes = 0;
    std::uint32_t rank = 0;
    std::uint32_t waits = 0;        // for so many steps
    std::uint32_t earlier = kNone;  // message between the same two
    std::uint32_t later = kNone;
    std::uint32_t other = kNone;  // end of the message
    std::uint32_t ring = kNone;   // that it goes through
    std::size_t moved = 0;        // of its bytes, into or out of the ring
    Answer answer = Answer::none;
    bool ready = false;  // nothing to wait for any more
    bool begun = false;  // ready, and so are earlier messages
    bool asked = false;  // its processor was
    bool sent = false;   // its transfer may begin
    bool gone = false;   // its transfer is over
    bool there = false;  // has arrived
  };
  /// One thing that took time, or takes it.
  struct Begun {
    std::uint32_t event = 0;
    Phase phase = Phase::work;
    std::size_t bytes = 0;
    std::uint32_t cause = kNone;  // the one whose end began it
    double at = 0;
  };
  /// Bytes between two ranks, in one direction.
  struct Ring {
    std::size_t taken = 0;         // of its room: what is being written, on its way, there, or being read
    std::size_t written = 0;       // and not on its way yet
    std::size_t there = 0;         // to be read
    std::uint32_t sender = kNone;  // whose turn it is at either end
    std::uint32_t receiver = kNone;
    bool crossing = false;  // something of it is on the links
  };
  /// What a link has saved up.
  struct Bucket {
    double bytes = 0;
    double idle = 0;  // seconds, when that was right
  };

  /// The links; then, where they are limits, the memory of each host, and how many are at work there.
  std::vector<Resource> resources_of(const Fabric& fabric);
  void lay_out();
  bool is_send(std::uint32_t event) const { return steps_[event].step->kind == Step::Kind::send; }
  Fabric::Path path_of(std::uint32_t event) const {
    return fabric_.path(to_rank(steps_[event].rank), steps_[event].step->peer);
  }
  /// What a message's level says.
  const Level& level_of(std::uint32_t event) const { return fabric_.network().levels[path_of(event).level]; }

  void start_open();
  void begin_messages(std::uint32_t event);
  void start_message(std::uint32_t event);
  void enqueue(std::uint32_t event);
  /// Of so many of its bytes, after those that were skipped.
  Work work_of(std::uint32_t event, std::size_t skipped, std::size_t bytes);
  /// Where input and output are the same, what would copy one to the other does nothing.
  bool is_there_already(std::uint32_t event) const;
  void start_work(std::uint32_t event);
  void start_work(Begun begun, const Work& work);
  /// Bytes go onto the links when those of the message before are through.
  void start_transfer(std::uint32_t event);
  void cross_links(std::uint32_t event, std::size_t bytes);
  void start(Begun begun, double seconds, double demand, std::span<const std::uint32_t> uses);
  void finish_phase(Begun over);
  void finish_step(std::uint32_t event);
  /// From the last thing that ended to what it waited for, and so on to the beginning.
  void trace_back();

  // simulate_rings.cpp
  /// The first message between two makes their ring, whichever end of it comes first.
  void put_in_ring(std::uint32_t event);
  /// Has those at its ends go on who can.
  void move_on(std::uint32_t number);
  bool can_move(std::uint32_t event) const;
  /// How much of a message may go before its receiver has answered.
  std::size_t unasked(std::uint32_t event) const;
  /// How much more of it its sender may write now.
  std::size_t free_to_go(std::uint32_t event) const;
  /// A receiver that has all that came unasked has to ask for the rest.
  void want_rest(std::uint32_t event);
  void finish_asking(std::uint32_t event);
  void skip_empty(Ring& ring) const;
  /// What a processor that has its turn now moves into the ring, or out of it.
  std::size_t take_portion(std::uint32_t event);
  void start_portion(std::uint32_t event, double turning);
  /// True: the processor goes on with the next message, without a turn for it.
  bool finish_portion(std::uint32_t event, std::size_t portion);
  /// What was written goes onto the links when what was before it is through.
  void cross(std::uint32_t event);

  // simulate_bursts.cpp
  void fill(std::uint32_t link);
  /// Of a message's bytes those that pass at once: they are spent.
  double spend(const Fabric::Path& path, double bytes);

  const Plan& plan_;
  std::vector<double> late_;  // by host
  PieceBytes bytes_;
  const Fabric& fabric_;
  Touched touched_;
  Events events_;
  Waiting waiting_;
  std::vector<State> steps_;
  WorkQueues queues_;
  std::uint32_t first_memory_ = kNone;
  std::uint32_t first_crowd_ = kNone;
  double switch_ = 0;   // seconds until a rank that waited has its core again
  bool woken_ = false;  // the one whose work begins now waited for it
  Activities activities_;
  std::vector<Begun> begun_;  // by the number of its activity
  std::vector<Ring> rings_;
  std::vector<Bucket> buckets_;    // by link
  std::uint32_t trigger_ = kNone;  // what is over now
  std::vector<std::uint32_t> open_;
  std::vector<std::uint32_t> begun_now_;  // messages, one end of each
  std::uint32_t unfinished_ = 0;
  Simulated result_;
};

/// A plan that runs again and again: how it goes once links have saved up no more than the runs before it left them.
Result<Simulated> simulate_again(const Plan& plan, std::size_t bytes_of_block, const Fabric& fabric);

}  // namespace tutti::plan
