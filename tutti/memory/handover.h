#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/base/file_descriptor.h"
#include "tutti/base/rank.h"

namespace tutti::memory {

/// Proof that a process was invited: made by the giver, passed to takers through the job's store.
using Ticket = std::array<std::uint8_t, 16>;

/// Hands one descriptor to other processes of the same user on this host, over a unix socket that has no file.
/// Owned by one thread.
class Giver {
 public:
  static Result<Giver> open();

  /// What a taker needs to know: the socket's name and the ticket, as one line of text.
  std::string invitation() const;

  /// Gives `fd` to `takers` processes, each once, or fails at the deadline naming how many came.
  /// Others, of another user or without the ticket, get nothing and hold nobody up.
  Status give(int fd, int takers, Deadline deadline);

 private:
  Giver(FileDescriptor socket, std::string name, Ticket ticket)
      : socket_(std::move(socket)), name_(std::move(name)), ticket_(ticket) {}

  FileDescriptor socket_;
  std::string name_;
  Ticket ticket_;
};

/// Takes the descriptor that an invitation promises. Blocks until it is there, or until the deadline.
Result<FileDescriptor> take(const std::string& invitation, Deadline deadline);

}  // namespace tutti::memory
