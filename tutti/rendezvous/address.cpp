#include "tutti/rendezvous/address.h"

#include <sys/random.h>

#include <array>
#include <charconv>

#include <fmt/format.h>

namespace tutti::rendezvous {
namespace {

// An abstract name: sun_path less the NUL that it starts with.
constexpr std::size_t kMaxUnixName = 107;
constexpr std::size_t kMaxHost = 253;

Error bad(std::string_view text, std::string_view why) {
  return {.code = Code::invalid_argument,
          .message = fmt::format("'{}' is no address of a store: {} (unix:NAME or tcp:HOST:PORT)",
                                 text.substr(0, 2 * kMaxHost), why)};
}

Result<Address> parse_tcp(std::string_view text, std::string_view rest) {
  const auto colon = rest.rfind(':');
  if (colon == std::string_view::npos) {
    return bad(text, "the port is missing");
  }
  auto host = rest.substr(0, colon);
  const auto digits = rest.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad(text, "an IPv6 host goes in brackets");
  }
  if (host.empty() || host.size() > kMaxHost || host.find_first_of("[] \t\n\0", 0, 6) != std::string_view::npos) {
    return bad(text, "the host is not usable");
  }
  Address address{.kind = Address::Kind::tcp, .name = std::string(host)};
  const auto* end = digits.data() + digits.size();
  const auto [stop, failure] = std::from_chars(digits.data(), end, address.port);
  if (failure != std::errc() || stop != end) {
    return bad(text, "the port is not a number from 0 to 65535");
  }
  return address;
}

}  // namespace

Result<Address> Address::parse(std::string_view text) {
  if (text.starts_with("tcp:")) {
    return parse_tcp(text, text.substr(4));
  }
  if (!text.starts_with("unix:")) {
    return bad(text, "it starts with neither unix: nor tcp:");
  }
  const auto name = text.substr(5);
  if (name.empty() || name.size() > kMaxUnixName || name.find('\0') != std::string_view::npos) {
    return bad(text, fmt::format("the name must have 1 to {} bytes and no NUL", kMaxUnixName));
  }
  return Address{.kind = Kind::unix_name, .name = std::string(name)};
}

Address Address::random_unix() {
  std::array<std::uint8_t, 16> bits{};
  require(::getrandom(bits.data(), bits.size(), 0) == static_cast<ssize_t>(bits.size()), "the kernel has random bits");
  std::string name = "tutti-";
  for (const auto byte : bits) {
    name += fmt::format("{:02x}", byte);
  }
  return {.kind = Kind::unix_name, .name = std::move(name)};
}

std::string Address::text() const {
  if (kind == Kind::unix_name) {
    return "unix:" + name;
  }
  const bool brackets = name.find(':') != std::string::npos;
  return fmt::format("tcp:{}{}{}:{}", brackets ? "[" : "", name, brackets ? "]" : "", port);
}

}  // namespace tutti::rendezvous
