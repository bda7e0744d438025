#pragma once

#include <memory>

#include "tutti/base/error.h"
#include "tutti/rendezvous/secret.h"
#include "tutti/rendezvous/transport.h"

namespace tutti::rendezvous {

/// One side's TLS settings for a job: version 1.3 alone, the secret as pre-shared key (with an ephemeral key exchange
/// on top), no certificates and hence nothing to fall back to. Any thread may make connections from it.
class Tls {
 public:
  enum class Side { client, server };

  static Result<std::shared_ptr<const Tls>> make(Side side, const Secret& secret);
  virtual ~Tls() = default;

  /// The descriptor stays the caller's and must outlive the transport; these settings live on with it.
  virtual Result<std::unique_ptr<Transport>> connect(int fd) const = 0;
};

}  // namespace tutti::rendezvous
