#include "tutti/memory/handover.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::memory {
namespace {

struct UnixAddress {
  sockaddr_un address{};
  socklen_t length = 0;
};

/// A leading zero makes it a name in the kernel instead of a file.
UnixAddress abstract_address(const std::string& name) {
  UnixAddress result;
  result.address.sun_family = AF_UNIX;
  std::memcpy(result.address.sun_path + 1, name.data(), name.size());
  result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return result;
}

bool same_user(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0 && credentials.uid == ::geteuid();
}

bool wait_readable(int fd, Deadline deadline) {
  for (;;) {
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&entry, 1, deadline.poll_timeout_ms());
    if (ready > 0) {
      return true;
    }
    if (ready == 0 || errno != EINTR) {
      return false;
    }
  }
}

std::string hex(std::span<const std::uint8_t> bytes) { return fmt::format("{:02x}", fmt::join(bytes, "")); }

std::optional<Ticket> ticket_from_hex(std::string_view text) {
  Ticket ticket{};
  if (text.size() != 2 * ticket.size()) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < ticket.size(); ++i) {
    unsigned value = 0;
    for (const char digit : text.substr(2 * i, 2)) {
      const auto position = std::string_view("0123456789abcdef").find(digit);
      if (position == std::string_view::npos) {
        return std::nullopt;
      }
      value = 16 * value + static_cast<unsigned>(position);
    }
    ticket[i] = static_cast<std::uint8_t>(value);
  }
  return ticket;
}

/// One byte of data, with room for a descriptor that rides on it. It points into itself, so it stays where it is.
struct DescriptorMessage {
  DescriptorMessage() {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
  }
  DescriptorMessage(const DescriptorMessage&) = delete;
  DescriptorMessage& operator=(const DescriptorMessage&) = delete;

  char byte = 0;
  iovec data{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
};

bool send_descriptor(int socket, int fd) {
  DescriptorMessage sent;
  cmsghdr* header = CMSG_FIRSTHDR(&sent.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(socket, &sent.message, MSG_NOSIGNAL) == 1;
}

FileDescriptor receive_descriptor(int socket) {
  DescriptorMessage received;
  if (::recvmsg(socket, &received.message, MSG_CMSG_CLOEXEC) != 1) {
    return FileDescriptor();
  }
  const cmsghdr* header = CMSG_FIRSTHDR(&received.message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return FileDescriptor();
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return FileDescriptor(fd);
}

/// Waits for events on the listener and on everyone who came and has not shown a ticket yet.
std::vector<pollfd> poll_all(int listener, const std::vector<FileDescriptor>& strangers, Deadline deadline) {
  std::vector<pollfd> entries{{.fd = listener, .events = POLLIN, .revents = 0}};
  for (const auto& stranger : strangers) {
    entries.push_back({.fd = stranger.get(), .events = POLLIN, .revents = 0});
  }
  const int ready = ::poll(entries.data(), entries.size(), deadline.poll_timeout_ms());
  if (ready <= 0) {
    for (auto& entry : entries) {
      entry.revents = 0;
    }
  }
  return entries;
}

}  // namespace

Result<Giver> Giver::open() {
  Ticket ticket{};
  std::array<std::uint8_t, 16> suffix{};
  if (::getrandom(ticket.data(), ticket.size(), 0) != static_cast<ssize_t>(ticket.size()) ||
      ::getrandom(suffix.data(), suffix.size(), 0) != static_cast<ssize_t>(suffix.size())) {
    return system_error("cannot get random bytes", errno);
  }
  auto name = "tutti-memory-" + hex(suffix);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) {
    return system_error("cannot open a unix socket", errno);
  }
  const auto address = abstract_address(name);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.address), address.length) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return system_error("cannot listen on a unix socket", errno);
  }
  return Giver(std::move(socket), std::move(name), ticket);
}

std::string Giver::invitation() const { return name_ + " " + hex(ticket_); }

Status Giver::give(int fd, int takers, Deadline deadline) {
  constexpr std::size_t kMostStrangers = 1024;
  std::vector<FileDescriptor> strangers;
  int given = 0;
  while (given < takers) {
    if (deadline.expired()) {
      return Error{Code::timed_out,
                   fmt::format("only {} of {} ranks of this host came for the shared memory", given, takers)};
    }
    const auto entries = poll_all(socket_.get(), strangers, deadline);
    for (std::size_t i = entries.size(); i-- > 1;) {
      if (entries[i].revents == 0) {
        continue;
      }
      Ticket shown{};
      const auto got = ::recv(strangers[i - 1].get(), shown.data(), shown.size(), MSG_DONTWAIT);
      // Written in one piece by an honest taker; whoever comes with less is none.
      if (got == static_cast<ssize_t>(shown.size()) && shown == ticket_ &&
          send_descriptor(strangers[i - 1].get(), fd)) {
        ++given;
      }
      strangers.erase(strangers.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    }
    if (entries[0].revents != 0) {
      FileDescriptor taker(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!taker.valid() && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
        auto error = system_error("cannot hand over shared memory; raise the limit of open files (ulimit -n)", errno);
        error.code = Code::resource_exhausted;
        return error;
      }
      if (taker.valid() && same_user(taker.get())) {
        if (strangers.size() >= kMostStrangers) {
          strangers.erase(strangers.begin());
        }
        strangers.push_back(std::move(taker));
      }
    }
  }
  return {};
}

Result<FileDescriptor> take(const std::string& invitation, Deadline deadline) {
  const auto space = invitation.find(' ');
  const auto ticket =
      space == std::string::npos ? std::nullopt : ticket_from_hex(std::string_view(invitation).substr(space + 1));
  if (!ticket || space == 0 || space > 100) {
    return Error{Code::protocol, "the invitation to shared memory is not one"};
  }
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) {
    return system_error("cannot open a unix socket", errno);
  }
  const auto address = abstract_address(invitation.substr(0, space));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.address), address.length) != 0) {
    return system_error("cannot reach the rank that made the shared memory (are all ranks on this host?)", errno);
  }
  if (!same_user(socket.get())) {
    return Error{Code::refused, "the shared memory's socket belongs to another user"};
  }
  if (::send(socket.get(), ticket->data(), ticket->size(), MSG_NOSIGNAL) != static_cast<ssize_t>(ticket->size())) {
    return system_error("cannot ask for the shared memory", errno);
  }
  if (!wait_readable(socket.get(), deadline)) {
    return Error{Code::timed_out, "the rank that made the shared memory did not hand it over in time"};
  }
  auto fd = receive_descriptor(socket.get());
  if (!fd.valid()) {
    return Error{Code::refused, "the rank that made the shared memory did not hand it over"};
  }
  return fd;
}

}  // namespace tutti::memory
