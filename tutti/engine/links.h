#pragma once

#include <cstdint>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/engine/call.h"

namespace tutti::engine {

struct Doing;

/// The ways between a rank and its peers over which plans are run. Messages have no tags and no headers: the k-th to a
/// peer is what that one's k-th receive from here gets, and both know its length. One thread at a time.
class Links {
 public:
  /// What went to one peer so far.
  struct Sent {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
  };

  virtual ~Links() = default;

  /// Begins a message, and does not wait. The bytes must stay until its number is over; there is at least one.
  virtual void send(Rank to, ConstBlock bytes, std::uint32_t number) = 0;
  virtual void receive(Rank from, Block bytes, std::uint32_t number) = 0;

  /// Moves what can be moved, and appends the numbers of what is over. When nothing can be moved, waits until something
  /// can. A failure forgets all that was begun, and breaks the group: nothing is touched afterwards.
  virtual Status advance(std::vector<std::uint32_t>& over, const Doing& doing, Deadline deadline) = 0;

  /// By peer.
  virtual const std::vector<Sent>& sent() const = 0;
};

}  // namespace tutti::engine
