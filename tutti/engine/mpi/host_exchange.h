#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "tutti/engine/mpi/mpi_links.h"
#include "tutti/kernels/reduce.h"

namespace tutti::engine::mpi {

/// What one rank of each host tells those of the others before any byte reaches an output: what its ranks call.
struct alignas(16) Greeting {
  std::uint64_t sequence = 0;
  Card card;
  std::uint32_t mark = 0;  ///< the call's mark (see Marked)
  std::int32_t rank = 0;   ///< one whose card it is
  bool even = true;        ///< all blocks are equally long
  bool in_parts = false;   ///< long messages are to go so
  bool failed = false;     ///< ranks differ; what comes behind is a packed error and no data
  std::uint32_t bytes = 0;
  std::uint64_t amount = 0;  ///< of what its ranks have (addends of round_sums), of the host that has most

  bool agrees(const Greeting& other) const;
};

/// Greetings between hosts, with small sums on their back: everybody's with everybody's in as few messages one after
/// the other as there are bits in the number of hosts. Hosts come to the same bits, and to the same sentence when they
/// disagree. By one rank of each host; one thread at a time.
class HostExchange {
 public:
  /// `leaders`: which ranks exchange, by host. Sums on the back of greetings are no longer than `longest`.
  HostExchange(const Wires& wires, std::vector<Rank> leaders, std::size_t longest);

  /// Room behind a greeting for the reason why it failed.
  static constexpr std::size_t kRoomForErrors = 2048;

  /// Where this host's share of the sum is laid down before, and where the sum is after. As long as the longest.
  std::byte* data() { return mine_.data() + sizeof(Greeting); }
  /// The greeting that came of it, with the data behind it.
  std::byte* message() { return mine_.data(); }

  /// Exchanges greetings, and adds up so many bytes of data. Code::mismatch when hosts call different things: every
  /// host then fails with the same error, and nothing is broken. `own` is what already went wrong on this host.
  Status run(Greeting& greeting, std::size_t bytes, const Status& own, const kernels::Reduction& reduction,
             const Doing& doing, Deadline deadline);

 private:
  enum class Way { send, receive, swap };
  void pack_mine(const Greeting& greeting, std::size_t bytes, const Status& own);
  Status talk(int host, Way way, const Doing& doing, Deadline deadline);
  void merge(int host, const kernels::Reduction& reduction);
  Greeting& header(std::vector<std::byte>& message) const { return *reinterpret_cast<Greeting*>(message.data()); }
  void fail_mine(const Error& error);
  Error explain(const Greeting& first, const Greeting& second) const;

  const Wires& wires_;
  const std::vector<Rank> leaders_;
  const int me_;
  const std::unique_ptr<Requests> requests_;
  std::vector<std::byte> mine_;
  std::vector<std::byte> theirs_;
};

}  // namespace tutti::engine::mpi
