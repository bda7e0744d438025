#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/base/error.h"

namespace tutti::rendezvous {

/// Where a store listens. As text: "unix:NAME" (a name in the kernel, no file: nothing to leave behind) or
/// "tcp:HOST:PORT" (an IPv6 host in brackets).
struct Address {
  enum class Kind { unix_name, tcp };
  Kind kind = Kind::unix_name;
  std::string name;  ///< the unix name, or the host
  std::uint16_t port = 0;

  static Result<Address> parse(std::string_view text);
  /// A unix address with 128 random bits in its name.
  static Address random_unix();
  std::string text() const;
  bool operator==(const Address&) const = default;
};

}  // namespace tutti::rendezvous
