#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/base/file_descriptor.h"
#include "tutti/rendezvous/address.h"
#include "tutti/rendezvous/job.h"
#include "tutti/rendezvous/proof.h"
#include "tutti/rendezvous/tls.h"
#include "tutti/rendezvous/transport.h"
#include "tutti/rendezvous/wire.h"

namespace tutti::rendezvous {

/// What a session needs of its server.
struct Door {
  const Secret* secret = nullptr;
  const Tls* tls = nullptr;
  std::span<char> scratch;  ///< to read into; shared by all sessions, 16 KiB at least
};

/// One accepted connection on its way from stranger to member. Never blocks. One thread.
class Session {
 public:
  enum class State {
    proving,   ///< tcp: sent a challenge, awaits the proof; the only one in which the peer is nobody
    securing,  ///< tcp: holds the secret; TLS handshake
    greeting,  ///< awaits the hello
    member,
    closing,  ///< ends when all is written
  };

  /// The most memory that a session in state `proving` holds, beside its socket.
  static std::size_t stranger_bytes();

  Session(ConnectionId id, FileDescriptor socket, Address::Kind kind);

  /// Says the first word: over tcp the challenge.
  Status open();

  /// Goes as far as it can without waiting. Code::peer_lost: the connection is gone; Code::refused and Code::protocol:
  /// the peer is to be turned away.
  Status advance(const Door& door);

  /// The next one that arrived whole. Code::protocol: not what it should be.
  Result<std::optional<Hello>> take_hello();
  Result<std::optional<Frame>> take_frame();

  void let_in(Rank rank) {
    state_ = State::member;
    rank_ = rank;
  }
  /// Queues bytes; Code::resource_exhausted when the peer reads so little that too much is queued already.
  Status send(std::string_view bytes);
  /// Writes what is queued, as far as the peer takes it.
  Status flush();
  /// To be ended once all that is queued is written.
  void finish() { state_ = State::closing; }
  /// Queues a refusal, if it is still time for one, and finishes.
  void refuse(const std::string& sentence);

  bool finished() const { return state_ == State::closing && queued() == 0; }
  State state() const { return state_; }
  std::optional<Rank> rank() const { return rank_; }  ///< once it was let in
  ConnectionId id() const { return id_; }
  int fd() const { return socket_.get(); }
  const std::string& peer() const { return peer_; }
  Deadline::Clock::time_point since() const { return since_; }

  /// What to wait for, as epoll's event bits, and what is being waited for now.
  std::uint32_t wanted() const;
  std::uint32_t watched = 0;

 private:
  std::size_t queued() const { return out_.size() - out_done_; }
  Status prove(const Door& door);
  Status secure();
  Status receive(const Door& door, std::size_t most);
  void consume(std::size_t bytes);

  ConnectionId id_;
  FileDescriptor socket_;
  State state_;
  std::optional<Rank> rank_;
  Deadline::Clock::time_point since_ = Deadline::Clock::now();
  std::string peer_;
  Nonce nonce_{};
  std::unique_ptr<Transport> transport_;
  bool handshake_wants_write_ = false;
  std::string in_;
  std::size_t in_done_ = 0;
  std::string out_;
  std::size_t out_done_ = 0;
};

}  // namespace tutti::rendezvous
