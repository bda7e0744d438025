#include "tutti/rendezvous/loop.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <spdlog/logger.h>

#include "tutti/version.h"

namespace tutti::rendezvous {
namespace {

constexpr int kAcceptAtOnce = 128;  // then those who are in have their turn
constexpr auto kAcceptPause = std::chrono::milliseconds(50);

}  // namespace

Loop::Loop(ServerOptions options, std::vector<Listening> listening, std::shared_ptr<const Tls> tls, Shared& shared)
    : options_(std::move(options)),
      listening_(std::move(listening)),
      tls_(std::move(tls)),
      shared_(shared),
      job_(options_.world_size, kVersion),
      door_{.secret = &options_.secret, .tls = tls_.get(), .scratch = scratch_} {}

Status Loop::watch(int fd, std::uint64_t token) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = token}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? Status()
                                                                   : system_error("cannot watch a socket", errno);
}

Status Loop::set_up() {
  next_id_ = first_session();
  epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  shared_.wake = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  reserve_ = FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!epoll_.valid() || !shared_.wake.valid()) {
    return system_error("cannot start the store's server", errno);
  }
  if (auto status = watch(shared_.wake.get(), 0); !status) {
    return status;
  }
  for (std::size_t i = 0; i < listening_.size(); ++i) {
    if (auto status = watch(listening_[i].socket.get(), 1 + i); !status) {
      return status;
    }
  }
  return {};
}

void Loop::run(const std::stop_token& stop) {
  std::array<epoll_event, 256> events{};
  while (!stop.stop_requested()) {
    const int ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), poll_timeout());
    for (int i = 0; i < ready; ++i) {
      const auto token = events[static_cast<std::size_t>(i)].data.u64;
      if (token == 0) {
        hear_of_losses();
      } else if (token < first_session()) {
        accept_from(listening_[token - 1]);
      } else if (const auto found = sessions_.find(ConnectionId{token}); found != sessions_.end()) {
        serve(*found->second);
      }
    }
    end_slow_strangers();
    if (!accepting_ && Clock::now() >= accept_again_) {
      set_accepting(true);
    }
    publish_counts();
  }
}

int Loop::poll_timeout() const {
  auto next = Clock::time_point::max();
  if (!strangers_.empty()) {
    next = sessions_.at(*strangers_.begin())->since() + options_.handshake_timeout;
  }
  if (!accepting_) {
    next = std::min(next, accept_again_);
  }
  if (next == Clock::time_point::max()) {
    return -1;
  }
  return Deadline::after(next - Clock::now()).poll_timeout_ms();
}

void Loop::accept_from(Listening& listening) {
  for (int i = 0; i < kAcceptAtOnce && listening.socket.valid(); ++i) {
    FileDescriptor socket(::accept4(listening.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      admit_socket(std::move(socket), listening.address.kind);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) {
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK || !make_room(errno, listening.socket.get())) {
      return;
    }
  }
}

bool Loop::make_room(int error_number, int listener) {
  if (!strangers_.empty() && (error_number == EMFILE || error_number == ENFILE)) {
    turn_away(*sessions_.at(*strangers_.begin()), "there are no descriptors left for strangers");
    return true;
  }
  // Nobody to turn away: take the newcomer off the queue, so that it knows, and rest a little. It may come again.
  log_refusal("a newcomer", system_error("cannot accept", error_number).message);
  reserve_.reset();
  FileDescriptor(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)).reset();
  reserve_ = FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  set_accepting(false);
  return false;
}

void Loop::set_accepting(bool accepting) {
  accepting_ = accepting;
  accept_again_ = Clock::now() + kAcceptPause;
  for (std::size_t i = 0; i < listening_.size(); ++i) {
    if (listening_[i].socket.valid()) {
      epoll_event event{.events = accepting ? std::uint32_t{EPOLLIN} : 0U, .data = {.u64 = 1 + i}};
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listening_[i].socket.get(), &event);
    }
  }
}

void Loop::close_listeners() {
  for (auto& listening : listening_) {
    listening.socket.reset();
  }
}

void Loop::admit_socket(FileDescriptor socket, Address::Kind kind) {
  ++shared_.accepted;
  if (strangers_.size() >= options_.max_strangers) {
    turn_away(*sessions_.at(*strangers_.begin()), "too many strangers at the door, the oldest goes");
  }
  const ConnectionId id{next_id_++};
  auto& session = *sessions_.emplace(id, std::make_unique<Session>(id, std::move(socket), kind)).first->second;
  strangers_.insert(id);
  if (auto watched = watch(session.fd(), static_cast<std::uint64_t>(id)); !watched) {
    return end(session, watched.error());
  }
  session.watched = EPOLLIN;
  if (kind == Address::Kind::unix_name) {
    const auto user = peer_user(session.fd());
    if (!user || user.value() != ::geteuid()) {
      turn_away(session, "belongs to another user; this job is of uid " + std::to_string(::geteuid()));
      return;
    }
  }
  if (auto opened = session.open(); !opened) {
    return end(session, opened.error());
  }
  serve(session);  // over a unix name the hello is often there already
}

void Loop::serve(Session& session) {
  const auto id = session.id();
  auto status = session.advance(door_);
  if (status && session.state() == Session::State::greeting) {
    status = serve_hello(session);
  }
  if (status && session.state() == Session::State::member) {
    status = serve_frames(session);
  }
  const auto found = sessions_.find(id);  // what it asked for may have been its own end
  if (found == sessions_.end()) {
    return;
  }
  if (!status) {
    return end(session, status.error());
  }
  settle(session);
}

Status Loop::serve_hello(Session& session) {
  auto hello = session.take_hello();
  if (!hello || !hello.value()) {
    return hello ? Status() : Status(hello.error());
  }
  auto generation = job_.hello(session.id(), *hello.value());
  if (!generation) {
    return generation.error();
  }
  session.let_in(hello.value()->rank);
  strangers_.erase(session.id());
  {
    const std::scoped_lock lock(shared_.mutex);
    shared_.left[hello.value()->rank] = std::nullopt;
  }
  options_.log->debug("rank {} is in ({}, generation {})", to_int(hello.value()->rank), describe(*hello.value()),
                      static_cast<std::uint64_t>(generation.value()));
  if (options_.close_when_complete && job_.complete(generation.value())) {
    close_listeners();
  }
  publish_counts();
  return session.send(
      encode(Answer{.admitted = true, .generation = static_cast<std::uint64_t>(generation.value()), .sentence = {}}));
}

Status Loop::serve_frames(Session& session) {
  const auto id = session.id();
  while (sessions_.contains(id) && session.state() == Session::State::member) {
    auto frame = session.take_frame();
    if (!frame || !frame.value()) {
      return frame ? Status() : Status(frame.error());
    }
    std::vector<Job::Out> outs;
    auto stays = job_.frame(id, std::move(*frame.value()), outs);
    if (!stays) {
      return stays.error();
    }
    if (!stays.value()) {  // the end of the connection tells it that its goodbye was heard
      publish_counts();
      forget(session);
    }
    send(outs);
  }
  return {};
}

void Loop::send(const std::vector<Job::Out>& outs) {
  for (const auto& out : outs) {
    const auto found = sessions_.find(out.to);
    if (found == sessions_.end()) {
      continue;
    }
    auto& session = *found->second;
    auto status = session.send(out.bytes);
    if (status) {
      status = session.flush();
    }
    if (!status && status.error().code == Code::resource_exhausted) {
      end(session, status.error());
    } else {
      settle(session);  // when it is broken, epoll says so
    }
  }
}

void Loop::settle(Session& session) {
  if (session.finished()) {
    return forget(session);
  }
  const auto wanted = session.wanted();
  if (wanted != session.watched) {
    epoll_event event{.events = wanted, .data = {.u64 = static_cast<std::uint64_t>(session.id())}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, session.fd(), &event);
    session.watched = wanted;
  }
}

void Loop::turn_away(Session& session, const std::string& reason) {
  log_refusal(session.peer(), reason);
  ++shared_.rejected;
  forget(session);
}

void Loop::end(Session& session, const Error& why) {
  if (session.state() == Session::State::member) {
    std::vector<Job::Out> outs;
    const auto sentence = job_.lost(session.id(), outs);
    options_.log->info("{}{}", sentence, why.code == Code::peer_lost ? "" : " (it " + why.message + ")");
    forget(session);
    publish_counts();
    return send(outs);
  }
  if (session.state() == Session::State::closing || why.code == Code::peer_lost) {
    return forget(session);
  }
  log_refusal(session.peer(), why.message);
  ++shared_.rejected;
  if (why.code != Code::refused) {
    return forget(session);
  }
  session.refuse(why.message);
  strangers_.insert(session.id());
  if (!session.flush()) {
    return forget(session);
  }
  settle(session);
}

void Loop::forget(Session& session) {
  if (const auto rank = session.rank()) {
    const std::scoped_lock lock(shared_.mutex);
    shared_.left[*rank] = Clock::now();
  }
  strangers_.erase(session.id());
  sessions_.erase(session.id());
}

void Loop::hear_of_losses() {
  eventfd_t count = 0;
  ::eventfd_read(shared_.wake.get(), &count);
  std::vector<std::pair<Rank, std::string>> lost;
  {
    const std::lock_guard lock(shared_.mutex);
    lost.swap(shared_.lost);
  }
  for (const auto& [rank, sentence] : lost) {
    std::vector<Job::Out> outs;
    job_.declare_lost(rank, sentence, outs);
    send(outs);
  }
}

void Loop::end_slow_strangers() {
  const auto now = Clock::now();
  while (!strangers_.empty()) {
    auto& oldest = *sessions_.at(*strangers_.begin());
    if (now - oldest.since() < options_.handshake_timeout) {
      return;
    }
    turn_away(oldest, "took too long to say who it is");
  }
}

void Loop::log_refusal(const std::string& peer, const std::string& reason) {
  if (const auto left_out = log_limit_.allow(Clock::now())) {
    options_.log->warn("turned away {}: {}{}", peer, reason,
                       *left_out == 0 ? std::string() : " (and " + std::to_string(*left_out) + " more before it)");
  }
}

void Loop::publish_counts() {
  shared_.strangers = strangers_.size();
  shared_.members = job_.members();
}

}  // namespace tutti::rendezvous
