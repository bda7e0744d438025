#include "tutti/rendezvous/transport.h"

#include <sys/socket.h>

#include <cerrno>

namespace tutti::rendezvous {
namespace {

class Plain final : public Transport {
 public:
  explicit Plain(int fd) : fd_(fd) {}

  Progress handshake() override { return Progress::done; }

  Moved read(std::span<char> into) override {
    const ssize_t got = retry([&] { return ::recv(fd_, into.data(), into.size(), 0); });
    if (got > 0) {
      return {Progress::done, static_cast<std::size_t>(got)};
    }
    return {got < 0 && would_block() ? Progress::want_read : Progress::closed, 0};
  }

  Moved write(std::string_view bytes) override {
    const ssize_t put = retry([&] { return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
    if (put >= 0) {
      return {Progress::done, static_cast<std::size_t>(put)};
    }
    return {would_block() ? Progress::want_write : Progress::closed, 0};
  }

 private:
  template <class Call>
  static ssize_t retry(Call call) {
    ssize_t result = call();
    while (result < 0 && errno == EINTR) {
      result = call();
    }
    return result;
  }
  static bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS; }

  int fd_;
};

}  // namespace

std::unique_ptr<Transport> plain_transport(int fd) { return std::make_unique<Plain>(fd); }

}  // namespace tutti::rendezvous
