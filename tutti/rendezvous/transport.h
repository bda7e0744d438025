#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "tutti/base/file_descriptor.h"

namespace tutti::rendezvous {

/// How far an attempt on a non-blocking connection got.
enum class Progress {
  done,        ///< some bytes went through, or the handshake is over
  want_read,   ///< nothing now; try again when the descriptor is readable
  want_write,  ///< the same, writable
  closed,      ///< the other side is gone, or does not do as it should
};

struct Moved {
  Progress progress = Progress::closed;
  std::size_t bytes = 0;
};

/// Bytes over one connected, non-blocking socket, in the clear or through TLS. Never blocks, never raises SIGPIPE.
/// One thread at a time.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual Progress handshake() = 0;
  virtual Moved read(std::span<char> into) = 0;
  virtual Moved write(std::string_view bytes) = 0;
};

/// The descriptor stays the caller's and must outlive it.
std::unique_ptr<Transport> plain_transport(int fd);

}  // namespace tutti::rendezvous
