#pragma once

#include <cstdint>
#include <string>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/base/file_descriptor.h"
#include "tutti/rendezvous/address.h"

namespace tutti::rendezvous {

// The system calls of the store's door. All descriptors are non-blocking and close-on-exec.

struct Listening {
  FileDescriptor socket;
  Address address;  ///< with the port it got
};

/// Listens on a unix name or a tcp address. Fails naming the address.
Result<Listening> listen_on(const Address& address);

/// Connects, waiting until the deadline at most. Code::not_found when nobody listens there now (worth another try),
/// Code::invalid_argument when the address can never work.
Result<FileDescriptor> connect_to(const Address& address, Deadline deadline);

/// The user at the other end of a unix connection.
Result<std::uint32_t> peer_user(int fd);

/// The other end for a log: "10.0.0.7:41234", "pid 123 (uid 1000)".
std::string peer_text(int fd);

/// Small messages go at once, and a host that is gone is noticed. Nothing for unix sockets.
void tune_connection(int fd, Address::Kind kind);

/// Waits until a descriptor is readable or writable; false when the deadline passed.
bool wait_for(int fd, short events, Deadline deadline);

/// This machine's name, for messages.
std::string host_name();

}  // namespace tutti::rendezvous
