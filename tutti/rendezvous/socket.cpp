#include "tutti/rendezvous/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>

#include <fmt/format.h>

namespace tutti::rendezvous {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

struct UnixName {
  sockaddr_un address{};
  socklen_t length = 0;
};

/// A name that starts with NUL lies in the kernel's own name space: no file, gone with its socket.
UnixName unix_name(const std::string& name) {
  UnixName result;
  result.address.sun_family = AF_UNIX;
  std::memcpy(result.address.sun_path + 1, name.data(), std::min(name.size(), sizeof(result.address.sun_path) - 1));
  result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

Result<AddressList> resolve(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(address.name.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (failure != 0) {
    return Error{.code = failure == EAI_AGAIN ? Code::not_found : Code::invalid_argument,
                 .message = fmt::format("cannot find the host of {}: {}", address.text(), ::gai_strerror(failure))};
  }
  return AddressList(found, &::freeaddrinfo);
}

FileDescriptor new_socket(int family) {
  return FileDescriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void set_option(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof(value)); }

Error cannot_listen(const Address& address, int error_number) {
  auto error = system_error("cannot listen on " + address.text(), error_number);
  if (error_number == EADDRINUSE) {
    error.code = Code::refused;  // somebody is there: perhaps this very job
  }
  return error;
}

std::uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Result<Listening> listen_tcp(const Address& address) {
  auto resolved = resolve(address, AI_PASSIVE);
  if (!resolved) {
    return resolved.error();
  }
  int failure = EADDRNOTAVAIL;
  for (const addrinfo* one = resolved.value().get(); one != nullptr; one = one->ai_next) {
    auto socket = new_socket(one->ai_family);
    set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (!socket.valid() || ::bind(socket.get(), one->ai_addr, one->ai_addrlen) != 0 ||
        ::listen(socket.get(), SOMAXCONN) != 0) {
      failure = errno;
      continue;
    }
    sockaddr_storage bound{};
    socklen_t length = sizeof(bound);
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &length);
    Listening listening{.socket = std::move(socket), .address = address};
    listening.address.port = port_of(bound);
    return listening;
  }
  return cannot_listen(address, failure);
}

Error nobody_there(const Address& address, int error_number) {
  auto error = system_error("cannot connect to " + address.text(), error_number);
  switch (error_number) {
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case EAGAIN:  // a unix name whose queue is full
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH: error.code = Code::not_found; break;
    default: break;
  }
  return error;
}

Result<FileDescriptor> connect_one(const Address& address, int family, const sockaddr* to, socklen_t length,
                                   Deadline deadline) {
  auto socket = new_socket(family);
  if (!socket.valid()) {
    return system_error("cannot make a socket for " + address.text(), errno);
  }
  if (::connect(socket.get(), to, length) == 0) {
    return socket;
  }
  if (errno != EINPROGRESS && errno != EINTR) {
    return nobody_there(address, errno);
  }
  if (!wait_for(socket.get(), POLLOUT, deadline)) {
    return nobody_there(address, ETIMEDOUT);
  }
  int failure = 0;
  socklen_t size = sizeof(failure);
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
  if (failure != 0) {
    return nobody_there(address, failure);
  }
  return socket;
}

std::optional<ucred> credentials(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? std::optional(peer) : std::nullopt;
}

}  // namespace

Result<Listening> listen_on(const Address& address) {
  if (address.kind == Address::Kind::tcp) {
    return listen_tcp(address);
  }
  auto socket = new_socket(AF_UNIX);
  const auto name = unix_name(address.name);
  if (!socket.valid() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return cannot_listen(address, errno);
  }
  return Listening{.socket = std::move(socket), .address = address};
}

Result<FileDescriptor> connect_to(const Address& address, Deadline deadline) {
  if (address.kind == Address::Kind::unix_name) {
    const auto name = unix_name(address.name);
    return connect_one(address, AF_UNIX, reinterpret_cast<const sockaddr*>(&name.address), name.length, deadline);
  }
  auto resolved = resolve(address, 0);
  if (!resolved) {
    return resolved.error();
  }
  Result<FileDescriptor> last = nobody_there(address, EADDRNOTAVAIL);
  for (const addrinfo* one = resolved.value().get(); one != nullptr; one = one->ai_next) {
    last = connect_one(address, one->ai_family, one->ai_addr, one->ai_addrlen, deadline);
    if (last) {
      return last;
    }
  }
  return last;
}

Result<std::uint32_t> peer_user(int fd) {
  const auto peer = credentials(fd);
  if (!peer) {
    return system_error("cannot tell who is at the other end", errno);
  }
  return peer->uid;
}

std::string peer_text(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return "a peer that is gone";
  }
  if (address.ss_family == AF_UNIX) {
    const auto peer = credentials(fd);
    return peer ? fmt::format("pid {} (uid {})", peer->pid, peer->uid) : "a process on this host";
  }
  char host[NI_MAXHOST] = "?";
  ::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return fmt::format("{}{}{}:{}", address.ss_family == AF_INET6 ? "[" : "", host,
                     address.ss_family == AF_INET6 ? "]" : "", port_of(address));
}

void tune_connection(int fd, Address::Kind kind) {
  if (kind != Address::Kind::tcp) {
    return;
  }
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

bool wait_for(int fd, short events, Deadline deadline) {
  pollfd one{.fd = fd, .events = events, .revents = 0};
  for (;;) {
    const int ready = ::poll(&one, 1, deadline.poll_timeout_ms());
    if (ready > 0) {
      return true;
    }
    if (ready == 0 || errno != EINTR) {
      return false;
    }
  }
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? std::string(name) : std::string("unknown");
}

}  // namespace tutti::rendezvous
