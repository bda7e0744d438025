#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "tutti/engine/collectives.h"
#include "tutti/engine/mpi/host_exchange.h"
#include "tutti/engine/mpi/library_collectives.h"
#include "tutti/engine/mpi/mpi_links.h"
#include "tutti/engine/planned.h"
#include "tutti/engine/widened.h"

namespace tutti::engine::mpi {

/// Collectives of ranks on several hosts. One thread at a time.
///
/// Ranks of a host first compare what they call; then one of each compares it with those of the other hosts, and tells
/// the result at home. Only when all agree does a byte reach an output.
class Across {
 public:
  /// `near`: those of this host's ranks.
  Across(const Wires& wires, Collectives& near);

  /// A call that passes check_call.
  Status run(const Call& call, Deadline deadline);

  /// The number of the last call.
  std::uint64_t sequence() const { return sequence_; }
  /// Counts a call that is refused, since the group is broken.
  std::uint64_t skip() { return ++sequence_; }

  Status choose(Op op, const OpChoices& choices);

  /// By rank: what went there over links.
  const std::vector<Links::Sent>& sent() const { return links_.sent(); }

 private:
  struct Running {
    const Call& call;
    const Doing& doing;
    Deadline deadline;
    const Card& card() const { return doing.card; }
  };

  // across.cpp: agreeing
  Status run_checked(const Running& running);
  Status agree(const Running& running, bool even_here, Collectives::Agreed& agreed);
  Result<Collectives::Agreed> agree_near(const Running& running, const Card& card, std::uint32_t mark);
  Error explain_near(const Running& running, const Error& first);
  Status tell_verdict(const Running& running, std::size_t bytes, const Status& mine, std::byte* message);
  Status exchange_tables(const Running& running);
  Status run_uneven(const Running& running);

  // across_sums.cpp
  /// How a sum is divided, and added up between hosts.
  struct Slicing {
    std::size_t leaders;  ///< ranks of each host that add up between hosts
    std::size_t slice;    ///< bytes that each of them adds up at once
    std::optional<plan::Algorithm> between;
  };
  /// Whatever goes wrong, also where there is no memory: no message touches anything afterwards.
  Status to_the_end(const std::function<Status()>& sum);
  bool is_small(const Card& card, const plan::Choice* choice) const;
  Status sum(const Running& running, const plan::Choice* choice);
  Status small_sum(const Running& running);
  Status reduce_near(const Running& running, Block to);
  Status large_sum(const Running& running);
  using Segments = std::vector<std::size_t>;
  Segments segments_of(std::size_t bytes) const;
  static Block segment_of(Block whole, const Segments& segments, std::size_t index);
  Status scatter_near(const Running& running, const Segments& segments, std::size_t index);
  Status gather_near(const Running& running, const Segments& segments, std::size_t index);
  PlanRunner& runner_between_hosts(std::size_t bytes);
  Slicing slicing_of(const plan::Choice* choice) const;
  void begin_between_hosts(const Running& running, const Segments& segments, std::size_t index);
  Status finish_between_hosts(const Running& running, const Segments& segments, std::size_t index);
  PlanRunner& outer_runner(plan::Op op, plan::Algorithm algorithm, unsigned chunks);
  void begin_between(const Running& running, Call call, PlanRunner& runner);
  Status finish_between(Deadline deadline);
  Block slice_of(Block whole, std::size_t index) const;
  void take_input(const Call& call, std::byte* to) const;
  void finish_sum(const Call& call, const std::byte* from, Block to) const;

  // across_rounds.cpp
  Status round_sums(const Running& running, std::uint64_t addends);
  Status take_near(const Running& running, const Segments& segments, std::size_t index);
  Slices parts_of(Block slice) const;
  void begin_merging(const Running& running, const Segments& segments, std::size_t index);
  Status finish_merging(const Running& running, const Segments& segments, std::size_t index);
  void begin_giving(const Running& running, const Segments& segments, std::size_t index);

  Rank me() const { return wires_.me; }
  int host() const { return wires_.members[me()].host; }
  Rank local() const { return wires_.members[me()].local; }
  std::size_t near_ranks() const { return wires_.members.by_host[static_cast<std::size_t>(host())].size(); }
  bool is_leader() const { return local() == Rank{0}; }
  /// What ranks of a host compare when they do not compare whole cards: enough that no two that differ look alike.
  static std::uint32_t mark_of(const Doing& doing, std::uint32_t mark);
  /// What all ranks must have beside the card (see Marked).
  std::uint32_t own_mark(const Call& call) const;
  /// A part of a larger operation may take a little longer: whoever waits for another host says first who is missing.
  static Deadline later(Deadline deadline);

  const Wires& wires_;
  Collectives& near_;
  MixedLinks links_;
  LibraryCollectives library_;
  /// Longer sums never ride on a greeting, whatever was chosen.
  static constexpr std::size_t kLongestSmall = std::size_t{1} << 20;
  const std::size_t longest_small_;         // where nothing was
  std::unique_ptr<HostExchange> exchange_;  // of leaders
  Planned chosen_;
  Planned defaults_;
  Planned uneven_;
  std::map<std::tuple<plan::Op, plan::Algorithm, unsigned>, PlanRunner> outer_;  // between hosts; chunks last
  PlanRunner::Scratch outer_scratch_ = PlanRunner::new_scratch();
  LeaderLinks leader_links_;
  struct {  // what is under way between hosts
    Call call;
    Doing doing;
    PlanRunner* runner = nullptr;
  } between_;
  Slicing slicing_{};                             // of the sum that is being run
  struct {                                        // of this rank's slices of sums under way
    std::size_t addends = 0;                      // of each host, as they are; 0: accumulators
    std::array<std::vector<std::byte>, 2> own{};  // what this host's ranks have: of one segment, and of the next
    std::vector<std::byte> others{};              // addends of other hosts, of the part that this one rounds
  } rounding_;
  Widened widened_;
  std::vector<std::byte> message_;
  std::uint64_t sequence_ = 0;
};

}  // namespace tutti::engine::mpi
