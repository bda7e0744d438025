#include "tutti/rendezvous/client.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "tutti/rendezvous/client_store.h"
#include "tutti/rendezvous/proof.h"
#include "tutti/rendezvous/socket.h"
#include "tutti/rendezvous/tls.h"
#include "tutti/rendezvous/wire.h"
#include "tutti/version.h"

namespace tutti::rendezvous {
namespace {

constexpr auto kFirstPause = std::chrono::milliseconds(2);
constexpr auto kLongestPause = std::chrono::milliseconds(100);

/// One attempt to join. Code::not_found means that another one may succeed.
class Attempt {
 public:
  Attempt(const ClientOptions& options, const Tls* tls, Deadline deadline)
      : options_(options), tls_(tls), deadline_(deadline), address_(options.address.text()) {}

  Result<std::shared_ptr<Store>> run() {
    auto socket = connect_to(options_.address, deadline_);
    if (!socket) {
      return socket.error();
    }
    socket_ = std::move(socket).value();
    transport_ = plain_transport(socket_.get());
    tune_connection(socket_.get(), options_.address.kind);
    if (auto status = options_.address.kind == Address::Kind::tcp ? secure() : check_user(); !status) {
      return status.error();
    }
    if (auto status = greet(); !status) {
      return status.error();
    }
    return make_client_store({.socket = std::move(socket_),
                              .transport = std::move(transport_),
                              .address = std::move(address_),
                              .served_by = options_.served_by});
  }

 private:
  Status check_user() {
    const auto user = peer_user(socket_.get());
    if (!user) {
      return user.error();
    }
    if (user.value() != ::geteuid()) {
      return Error{.code = Code::refused,
                   .message = fmt::format("{} is held by another user (uid {}; this is uid {})", address_, user.value(),
                                          ::geteuid())};
    }
    return {};
  }

  Status secure() {
    std::string bytes;
    while (bytes.size() < kChallengeBytes) {
      if (auto status = read_some(bytes, kChallengeBytes - bytes.size()); !status) {
        return status;
      }
    }
    auto server = decode_challenge(bytes);
    auto mine = make_nonce();
    if (!server || !mine) {
      return server ? mine.error() : Error{.code = Code::protocol, .message = address_ + " " + server.error().message};
    }
    if (auto status = write_all(make_proof(*options_.secret, server.value(), mine.value())); !status) {
      return status;
    }
    if (auto status = await_answer(); !status) {
      return status;
    }
    auto secured = tls_->connect(socket_.get());
    if (!secured) {
      return secured.error();
    }
    transport_ = std::move(secured).value();
    for (auto progress = transport_->handshake(); progress != Progress::done; progress = transport_->handshake()) {
      if (auto status = wait(progress); !status) {
        return status;
      }
    }
    return {};
  }

  Status greet() {
    const Hello hello{.rank = options_.rank,
                      .world_size = options_.world_size,
                      .pid = ::getpid(),
                      .version = kVersion,
                      .host = host_name()};
    // A server that turns us away may close before it has read this; its answer counts all the same.
    auto written = write_all(encode(hello));
    if (!written && written.error().code != Code::not_found) {
      return written;
    }
    return await_answer();
  }

  Status await_answer() {
    std::string bytes;
    for (;;) {
      auto decoded = decode_answer(bytes);
      if (!decoded) {
        return Error{.code = Code::protocol, .message = address_ + " " + decoded.error().message};
      }
      if (decoded.value()) {
        auto& [answer, used] = *decoded.value();
        if (!answer.admitted) {
          return Error{.code = Code::refused, .message = fmt::format("{} says: {}", address_, answer.sentence)};
        }
        return used == bytes.size() ? Status() : Error{.code = Code::protocol, .message = address_ + " says too much"};
      }
      if (auto status = read_some(bytes, kMaxAnswerBytes); !status) {
        return status;
      }
    }
  }

  Status read_some(std::string& into, std::size_t most) {
    std::array<char, kMaxAnswerBytes> buffer{};
    for (;;) {
      const auto moved = transport_->read(std::span(buffer).first(std::min(most, buffer.size())));
      if (moved.progress == Progress::done) {
        into.append(buffer.data(), moved.bytes);
        return {};
      }
      if (auto status = wait(moved.progress); !status) {
        return status;
      }
    }
  }

  Status write_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto moved = transport_->write(bytes);
      bytes.remove_prefix(moved.bytes);
      if (moved.progress != Progress::done) {
        if (auto status = wait(moved.progress); !status) {
          return status;
        }
      }
    }
    return {};
  }

  Status wait(Progress progress) {
    if (progress == Progress::closed) {
      return Error{.code = Code::not_found, .message = address_ + " closed the connection without an answer"};
    }
    const short events = progress == Progress::want_write ? POLLOUT : POLLIN;
    if (!wait_for(socket_.get(), events, deadline_)) {
      return Error{.code = Code::timed_out, .message = fmt::format("timed out: {} does not answer", address_)};
    }
    return {};
  }

  const ClientOptions& options_;
  const Tls* tls_;
  Deadline deadline_;
  std::string address_;
  FileDescriptor socket_;
  std::unique_ptr<Transport> transport_;
};

}  // namespace

Result<std::shared_ptr<Store>> join(const ClientOptions& options, Deadline deadline) {
  std::shared_ptr<const Tls> tls;
  if (options.address.kind == Address::Kind::tcp) {
    if (!options.secret) {
      return Error{.code = Code::invalid_argument,
                   .message = fmt::format("{} needs the job's secret, and there is none", options.address.text())};
    }
    auto made = Tls::make(Tls::Side::client, *options.secret);
    if (!made) {
      return made.error();
    }
    tls = made.value();
  }
  Deadline::Clock::duration pause = kFirstPause;
  for (;;) {
    auto joined = Attempt(options, tls.get(), deadline).run();
    if (joined || joined.error().code != Code::not_found || !options.wait_for_server) {
      return joined;
    }
    if (deadline.expired()) {
      return Error{.code = Code::timed_out, .message = "timed out: " + joined.error().message};
    }
    std::this_thread::sleep_for(std::min(pause, deadline.remaining()));
    pause = std::min<Deadline::Clock::duration>(2 * pause, kLongestPause);
  }
}

}  // namespace tutti::rendezvous
