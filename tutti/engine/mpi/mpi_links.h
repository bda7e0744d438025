#pragma once

#include <memory>

#include "tutti/engine/links.h"
#include "tutti/engine/mpi/far_links.h"
#include "tutti/engine/mpi/library.h"
#include "tutti/engine/mpi/members.h"
#include "tutti/engine/ring_links.h"

namespace tutti::engine::mpi {

/// What links of one group share.
struct Wires {
  std::shared_ptr<Library> library;
  Communicator communicator{};  ///< of the group: ranks in it are the group's
  const Members& members;
  Rank me{0};
  Hub& hub;  ///< of this host's ranks of the group
};

/// Links between the ranks of a group on several hosts: through shared memory where both are on one, by MPI elsewhere.
class MixedLinks final : public Links {
 public:
  explicit MixedLinks(const Wires& wires);

  void send(Rank to, ConstBlock bytes, std::uint32_t number) override;
  void receive(Rank from, Block bytes, std::uint32_t number) override;
  Status advance(std::vector<std::uint32_t>& over, const Doing& doing, Deadline deadline) override;
  const std::vector<Sent>& sent() const override { return sent_; }

  /// Whether long messages between hosts had better go in parts (see FarLinks), and that they do.
  bool wants_parts() const { return wires_.library->api().mixes_long_messages() && far_.is_slow(); }
  void set_in_parts(bool in_parts) { far_.set_in_parts(in_parts); }

  /// Everything that was begun: nothing is touched any more. The group is of no more use then.
  void forget();

 private:
  bool is_near(Rank peer) const { return wires_.members[peer].host == wires_.members[wires_.me].host; }
  void note(int error);
  Status look(std::vector<std::uint32_t>& over, const Doing& doing, bool& moved);
  std::optional<Error> why_stop(const Doing& doing, Deadline deadline) const;
  Error give_up(const Error& why);

  const Wires& wires_;
  RingLinks near_;
  const std::unique_ptr<Requests> requests_;
  FarLinks far_;
  int error_ = 0;  // of MPI
  std::vector<Sent> sent_;
};

/// The same ranks of several hosts (one of each), as if they were a group of their own: rank h is that of host h.
class LeaderLinks final : public Links {
 public:
  LeaderLinks(Links& links, std::vector<Rank> leaders) : links_(links), leaders_(std::move(leaders)) {}

  void send(Rank to, ConstBlock bytes, std::uint32_t number) override {
    links_.send(leaders_[to_index(to)], bytes, number);
  }
  void receive(Rank from, Block bytes, std::uint32_t number) override {
    links_.receive(leaders_[to_index(from)], bytes, number);
  }
  Status advance(std::vector<std::uint32_t>& over, const Doing& doing, Deadline deadline) override {
    return links_.advance(over, doing, deadline);
  }
  /// By rank in the group.
  const std::vector<Sent>& sent() const override { return links_.sent(); }

 private:
  Links& links_;
  const std::vector<Rank> leaders_;
};

inline constexpr int kPlanTag = 1;
inline constexpr int kGreetingTag = 2;
inline constexpr int kFirstMessageTag = 16;  ///< of what programs send each other

}  // namespace tutti::engine::mpi
