#include "tutti/rendezvous/session.h"

#include <sys/epoll.h>

#include <algorithm>

#include "tutti/rendezvous/socket.h"

namespace tutti::rendezvous {
namespace {

constexpr std::size_t kReadAtOnce = 256 << 10;    // then the others have their turn
constexpr std::size_t kPauseAt = kMaxFrameBytes;  // queued for a member: read no more from it until it reads
constexpr std::size_t kMaxQueued = 4 * kMaxFrameBytes;
constexpr std::size_t kKeptCapacity = 64 << 10;

Error gone() { return {.code = Code::peer_lost, .message = "the connection is gone"}; }

void drop_done(std::string& buffer, std::size_t& done) {
  if (done == buffer.size()) {
    buffer.clear();
    done = 0;
    if (buffer.capacity() > kKeptCapacity) {
      std::string().swap(buffer);
    }
  } else if (done > kKeptCapacity && done > buffer.size() / 2) {
    buffer.erase(0, done);
    done = 0;
  }
}

}  // namespace

std::size_t Session::stranger_bytes() {
  constexpr std::size_t kNodes = 256;  // the server's tables and the allocator's heads
  constexpr std::size_t kBytes = sizeof(Session) + 2 * (kProofBytes + kChallengeBytes) + kNodes;
  static_assert(kBytes <= 4096);
  return kBytes;
}

Session::Session(ConnectionId id, FileDescriptor socket, Address::Kind kind)
    : id_(id),
      socket_(std::move(socket)),
      state_(kind == Address::Kind::tcp ? State::proving : State::greeting),
      peer_(peer_text(socket_.get())),
      transport_(plain_transport(socket_.get())) {
  tune_connection(socket_.get(), kind);
}

Status Session::open() {
  if (state_ != State::proving) {
    return {};
  }
  auto nonce = make_nonce();
  if (!nonce) {
    return nonce.error();
  }
  nonce_ = nonce.value();
  out_ = encode_challenge(nonce_);
  return flush();
}

Status Session::advance(const Door& door) {
  if (state_ == State::proving) {
    if (auto status = prove(door); !status) {
      return status;
    }
  }
  if (state_ == State::securing) {
    if (auto status = secure(); !status) {
      return status;
    }
  }
  if (state_ == State::greeting) {
    if (auto status = receive(door, kMaxHelloBytes); !status) {
      return status;
    }
  } else if (state_ == State::member && queued() < kPauseAt) {
    if (auto status = receive(door, kReadAtOnce); !status) {
      return status;
    }
  }
  return state_ == State::securing ? Status() : flush();
}

Status Session::prove(const Door& door) {
  if (auto status = receive(door, kProofBytes - in_.size()); !status) {
    return status;
  }
  // Anything that cannot become a proof any more is turned away at once.
  if (in_.size() < kProofBytes) {
    return looks_like_proof(in_) ? Status() : check_proof(*door.secret, nonce_, in_);
  }
  if (auto status = check_proof(*door.secret, nonce_, in_); !status) {
    return status;
  }
  in_.clear();
  out_ += encode(Answer{.admitted = true, .sentence = {}});
  if (auto status = flush(); !status || queued() > 0) {
    return gone();  // its socket cannot take the few bytes: it never read the challenge
  }
  auto secure = door.tls->connect(socket_.get());
  if (!secure) {
    return secure.error();
  }
  transport_ = std::move(secure).value();
  state_ = State::securing;
  return {};
}

Status Session::secure() {
  const auto progress = transport_->handshake();
  handshake_wants_write_ = progress == Progress::want_write;
  if (progress == Progress::closed) {
    return Error{.code = Code::refused, .message = "the TLS handshake failed"};
  }
  if (progress == Progress::done) {
    state_ = State::greeting;
  }
  return {};
}

Status Session::receive(const Door& door, std::size_t most) {
  for (std::size_t total = 0; total < most;) {
    const auto moved = transport_->read(door.scratch.first(std::min(door.scratch.size(), most - total)));
    if (moved.progress == Progress::closed) {
      // What came before the end still counts: a goodbye, say. The end is seen again next time.
      return total > 0 ? Status() : Status(gone());
    }
    if (moved.progress != Progress::done) {
      return {};
    }
    in_.append(door.scratch.data(), moved.bytes);
    total += moved.bytes;
  }
  return {};
}

void Session::consume(std::size_t bytes) {
  in_done_ += bytes;
  drop_done(in_, in_done_);
}

Result<std::optional<Hello>> Session::take_hello() {
  auto decoded = decode_hello(std::string_view(in_).substr(in_done_));
  if (!decoded) {
    return decoded.error();
  }
  if (!decoded.value()) {
    return std::optional<Hello>();
  }
  consume(decoded.value()->used);
  return std::optional(std::move(decoded.value()->value));
}

Result<std::optional<Frame>> Session::take_frame() {
  auto decoded = decode_frame(std::string_view(in_).substr(in_done_));
  if (!decoded) {
    return decoded.error();
  }
  if (!decoded.value()) {
    return std::optional<Frame>();
  }
  consume(decoded.value()->used);
  return std::optional(std::move(decoded.value()->value));
}

Status Session::send(std::string_view bytes) {
  if (queued() + bytes.size() > kMaxQueued) {
    return Error{.code = Code::resource_exhausted, .message = "does not read its answers"};
  }
  out_.append(bytes);
  return {};
}

Status Session::flush() {
  while (queued() > 0) {
    const auto moved = transport_->write(std::string_view(out_).substr(out_done_));
    if (moved.progress == Progress::closed) {
      return gone();
    }
    if (moved.progress != Progress::done) {
      break;
    }
    out_done_ += moved.bytes;
    drop_done(out_, out_done_);
  }
  return {};
}

void Session::refuse(const std::string& sentence) {
  if (state_ == State::securing) {  // between the plain and the secured words there is no place for a sentence
    out_.clear();
    out_done_ = 0;
  } else {
    out_ += encode(Answer{.admitted = false, .sentence = sentence});
  }
  finish();
}

std::uint32_t Session::wanted() const {
  std::uint32_t events = 0;
  if (state_ != State::closing && !(state_ == State::member && queued() >= kPauseAt)) {
    events |= EPOLLIN;
  }
  if (queued() > 0 || handshake_wants_write_) {
    events |= EPOLLOUT;
  }
  return events;
}

}  // namespace tutti::rendezvous
