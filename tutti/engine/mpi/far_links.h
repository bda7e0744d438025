#pragma once

#include <deque>
#include <map>
#include <vector>

#include "tutti/base/rank.h"
#include "tutti/engine/call.h"
#include "tutti/engine/mpi/mpi_api.h"
#include "tutti/engine/mpi/pace.h"

namespace tutti::engine::mpi {

/// Messages to and from ranks of other hosts, over MPI: the k-th to a rank is what that one's k-th receive from here
/// gets.
///
/// A long message goes whole where that is fast: MPI asks the receiver first, then has nothing to copy. But with Open
/// MPI, all that are under way to the same rank take turns, and end together; and each question waits behind everything
/// that is on its way back. Over a slow cable that costs more than copying does. There they go in parts that MPI sends
/// unasked, one behind the other, of which only so many are under way: who waits for the first message can go on with
/// it while the next comes.
///
/// One thread at a time, whose turn it is to call MPI. Calls give MPI's error code, 0 for none.
class FarLinks {
 public:
  /// Between so many ranks of a communicator, as messages with that tag.
  FarLinks(Requests& requests, Communicator where, int tag, int ranks);

  int send(Rank to, ConstBlock bytes, std::uint32_t number);
  int receive(Rank from, Block bytes, std::uint32_t number);
  /// Lets MPI move what it can, and appends the numbers of what is over. `moved`: something came or went, be it a part.
  int poll(std::vector<std::uint32_t>& over, bool& moved);

  /// Whether what came took so long that long messages had better go in parts.
  bool is_slow() const { return pace_.is_slow(); }
  /// How those go that begin from now on, the same on all ranks. While nothing is under way.
  void set_in_parts(bool in_parts) { in_parts_ = in_parts; }

  bool is_idle() const { return messages_.empty(); }
  /// Whom something is to or from that is not over, in order.
  std::vector<Rank> awaited() const;
  /// Everything that was begun.
  void forget();

  static constexpr std::size_t kPart = std::size_t{60} << 10;  ///< what MPIs send without asking
  static constexpr std::size_t kAtOnce = 8 * kPart;            ///< of parts to or from the same rank

 private:
  struct Message {
    Rank peer{0};
    bool sends = false;
    bool in_parts = false;
    std::byte* data = nullptr;  // of a send only read
    std::size_t bytes = 0;
    std::size_t begun = 0;
    std::size_t over = 0;
  };
  /// Messages to or from one rank that are yet to begin, or parts of them, in order.
  struct Lane {
    std::deque<std::uint32_t> waiting;
    std::size_t under_way = 0;  // bytes of parts
  };
  struct Part {
    std::uint32_t message = 0;
    std::size_t bytes = 0;
  };

  Lane& lane_of(const Message& message);
  int add(Message message, std::uint32_t number);
  int begin_more(Lane& lane);
  int begin_part(Message& message, std::uint32_t number, std::size_t bytes);
  int finish_part(std::uint32_t id, std::vector<std::uint32_t>& over);

  Requests& requests_;
  const Communicator where_;
  const int tag_;
  bool in_parts_ = false;
  Pace pace_;
  std::vector<Lane> sends_;                    // by rank
  std::vector<Lane> receives_;                 // by rank
  std::map<std::uint32_t, Message> messages_;  // that are not over
  std::map<std::uint32_t, Part> parts_;        // that are under way, by the number that MPI knows
  std::uint32_t next_part_ = 0;
  std::vector<Over> ends_;
};

}  // namespace tutti::engine::mpi
