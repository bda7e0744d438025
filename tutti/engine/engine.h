#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/engine/call.h"
#include "tutti/engine/links.h"
#include "tutti/engine/planned.h"
#include "tutti/engine/reach.h"

namespace tutti::engine {

/// Called once when something submitted is over; by a thread of the engine, which it must not hold up.
using Done = std::function<void(const Status&)>;

/// Called when a receive is over, with the rank that the message came from.
using Received = std::function<void(const Result<Rank>&)>;

/// Matches any sender.
inline constexpr Rank kAnyRank{-1};

/// What moves bytes between the ranks of one group. `local` has ranks as threads, `shm` as processes of one host.
///
/// Collectives are started in the same order on every rank and run one at a time, in that order; messages between two
/// ranks arrive in the order in which they were sent, per tag, and never wait for collectives.
/// After a failure that leaves ranks out of step (a lost rank, a deadline, an abort) the group is broken: everything
/// pending and everything later fails with the first error. A mismatch of collectives breaks nothing; a message of
/// another length than its receiver expects does, since its bytes are under way.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string_view name() const = 0;
  virtual Rank rank() const = 0;
  virtual int ranks() const = 0;
  /// Otherwise the error says what is missing.
  virtual Status can(Op op) const = 0;

  /// How peers' memory is reached, and where symmetric memory comes from; null when ranks share none. It may outlive
  /// the engine.
  virtual std::shared_ptr<Reach> reach() const = 0;

  /// Runs a collective on the calling thread and blocks until this rank's part is done; one that cannot be (see
  /// check_call and `can`) fails at once, and breaks nothing. One at a time.
  virtual Status run(const Call& call, Deadline deadline) = 0;

  /// What it is made of, as far as it decides what is quick.
  virtual plan::GroupShape shape() const = 0;

  /// By what an operation is run from now on. The same on every rank, and not while one runs. Fails when one of them
  /// cannot be here, and changes nothing then.
  virtual Status choose(Op op, const OpChoices& choices) = 0;

  /// By rank: what plans sent there so far. What is run in other ways is not counted. Not while something runs.
  virtual std::vector<Links::Sent> sent() const = 0;

  /// Starts a message. The bytes must live until it is over. Any thread; does not block.
  virtual void send(Rank to, std::uint64_t tag, ConstBlock bytes, Deadline deadline, Done done) = 0;
  virtual void receive(Rank from, std::uint64_t tag, Block bytes, Deadline deadline, Received received) = 0;

  /// Ends everything in flight, on every rank, with this error. Any thread.
  virtual void abort(const Error& why) = 0;

  /// The error that broke the group, when it is broken. Any thread.
  virtual std::optional<Error> broken() const = 0;

  /// Whether the calling thread is one of the engine's own, which must not wait for the engine to end.
  virtual bool on_own_thread() const = 0;
};

}  // namespace tutti::engine
