#include "tutti/rendezvous/client_store.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "tutti/rendezvous/socket.h"
#include "tutti/rendezvous/wire.h"

namespace tutti::rendezvous {
namespace {

// A call whose time is up asks the server what was missing, and waits this much longer for the sentence.
constexpr auto kGrace = std::chrono::seconds(1);
constexpr auto kGoodbyeTime = std::chrono::seconds(1);

class ClientStore final : public Store {
 public:
  ClientStore(Joined joined, FileDescriptor wake) : joined_(std::move(joined)), wake_(std::move(wake)) {}
  ~ClientStore() override;

  Result<Reply> call(const Request& request, Deadline deadline) override;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Call {
    std::condition_variable changed;
    std::optional<Result<Reply>> result;
    bool follows = false;  ///< sleeps on `changed`; may be asked to read for all
  };

  void wait(Lock& lock, Call& mine, Deadline deadline);
  void read_for_all(Lock& lock, Call& mine, Deadline deadline);
  void hand_over();
  void send(const Frame& frame);
  void flush();
  void receive();
  void take_frames();
  void break_off(const std::string& why);
  Error timed_out(const Request& request) const;

  const pid_t owner_ = ::getpid();
  Joined joined_;
  FileDescriptor wake_;  ///< makes the one who reads look again, when there is more to write
  std::mutex mutex_;     // guards all below, and the transport
  std::map<std::uint64_t, Call*> calls_;
  std::uint64_t next_id_ = 1;
  bool somebody_reads_ = false;
  std::optional<Error> broken_;
  std::string out_;
  std::size_t out_done_ = 0;
  std::string in_;
  std::size_t in_done_ = 0;
  std::array<char, 32 << 10> scratch_{};
};

Result<Reply> ClientStore::call(const Request& request, Deadline deadline) {
  if (::getpid() != owner_) {
    return Error{
        .code = Code::unsupported,
        .message = fmt::format("this process was forked from pid {}, whose connection to the store it cannot use; "
                               "join the job anew, or use the store in the parent alone",
                               owner_)};
  }
  Lock lock(mutex_);
  if (broken_) {
    return *broken_;
  }
  const auto id = next_id_++;
  auto bytes = encode(Frame{.id = id, .body = request});
  if (!bytes) {
    return bytes.error();
  }
  Call mine;
  calls_.emplace(id, &mine);
  out_ += bytes.value();
  flush();
  wait(lock, mine, deadline);
  if (!mine.result) {
    send(Frame{.id = id, .body = Cancel{}});
    wait(lock, mine, Deadline::after(kGrace));
  }
  calls_.erase(id);
  return mine.result ? std::move(*mine.result) : timed_out(request);
}

void ClientStore::wait(Lock& lock, Call& mine, Deadline deadline) {
  while (!mine.result) {
    if (!somebody_reads_) {
      read_for_all(lock, mine, deadline);
      return;
    }
    mine.follows = true;
    const auto woken = [&] { return mine.result || !somebody_reads_; };
    const bool in_time = deadline.is_never() ? (mine.changed.wait(lock, woken), true)
                                             : mine.changed.wait_until(lock, deadline.at(), woken);
    mine.follows = false;
    if (!in_time) {
      return;
    }
  }
}

void ClientStore::read_for_all(Lock& lock, Call& mine, Deadline deadline) {
  somebody_reads_ = true;
  bool look_once = true;  // what is there already counts, also when the time is up
  while (!mine.result && !broken_ && (look_once || !deadline.expired())) {
    std::array<pollfd, 2> polled = {{{.fd = joined_.socket.get(), .events = POLLIN, .revents = 0},
                                     {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
    if (!out_.empty()) {
      polled[0].events |= POLLOUT;
    }
    const int timeout = deadline.poll_timeout_ms();
    lock.unlock();
    const int ready = ::poll(polled.data(), polled.size(), timeout);
    const int failure = errno;
    lock.lock();
    look_once = false;
    if (ready < 0 && failure != EINTR) {
      break_off(system_error("poll", failure).message);
    }
    if (polled[1].revents != 0) {
      eventfd_t count = 0;
      ::eventfd_read(wake_.get(), &count);
    }
    flush();
    receive();
  }
  somebody_reads_ = false;
  hand_over();
}

void ClientStore::hand_over() {
  for (const auto& [id, call] : calls_) {
    if (call->follows && !call->result) {
      call->changed.notify_one();
      return;
    }
  }
}

void ClientStore::send(const Frame& frame) {
  if (!broken_) {
    out_ += encode(frame).value();
    flush();
  }
}

void ClientStore::flush() {
  while (!broken_ && out_done_ < out_.size()) {
    const auto moved = joined_.transport->write(std::string_view(out_).substr(out_done_));
    if (moved.progress == Progress::closed) {
      receive();  // it may have said why
      break_off("the connection is closed");
    }
    if (moved.progress != Progress::done) {
      break;
    }
    out_done_ += moved.bytes;
  }
  if (out_done_ == out_.size()) {
    out_.clear();
    out_done_ = 0;
  }
  if (!out_.empty() && somebody_reads_) {
    ::eventfd_write(wake_.get(), 1);
  }
}

void ClientStore::receive() {
  while (!broken_) {
    const auto moved = joined_.transport->read(scratch_);
    if (moved.progress == Progress::closed) {
      break_off("the connection is closed");
    }
    if (moved.progress != Progress::done) {
      return;
    }
    in_.append(scratch_.data(), moved.bytes);
    take_frames();
  }
}

void ClientStore::take_frames() {
  while (!broken_) {
    auto decoded = decode_frame(std::string_view(in_).substr(in_done_));
    if (!decoded) {
      return break_off("it " + decoded.error().message);
    }
    if (!decoded.value()) {
      break;
    }
    in_done_ += decoded.value()->used;
    auto& frame = decoded.value()->value;
    const auto found = calls_.find(frame.id);
    if (found == calls_.end() || found->second->result) {
      continue;  // too late
    }
    if (auto* reply = std::get_if<Reply>(&frame.body)) {
      found->second->result = std::move(*reply);
    } else if (auto* error = std::get_if<Error>(&frame.body)) {
      found->second->result = std::move(*error);
    } else {
      return break_off("it sent a frame that only members send");
    }
    found->second->changed.notify_one();
  }
  in_.erase(0, in_done_);
  in_done_ = 0;
}

void ClientStore::break_off(const std::string& why) {
  if (broken_) {
    return;
  }
  const std::string who = joined_.served_by ? fmt::format("rank {}, which served the rendezvous at {},",
                                                          to_int(*joined_.served_by), joined_.address)
                                            : fmt::format("the job's store at {}", joined_.address);
  broken_ =
      Error{.code = Code::peer_lost, .message = fmt::format("{} is gone: {}", who, why), .rank = joined_.served_by};
  for (const auto& [id, call] : calls_) {
    if (!call->result) {
      call->result = *broken_;
      call->changed.notify_one();
    }
  }
}

Error ClientStore::timed_out(const Request& request) const {
  constexpr std::size_t kMostNamed = 8;
  std::string keys;
  for (std::size_t i = 0; i < std::min(request.keys.size(), kMostNamed); ++i) {
    keys += fmt::format("{}'{}'", i == 0 ? "" : ", ", request.keys[i].substr(0, 100));
  }
  return {.code = Code::timed_out,
          .message = fmt::format("timed out: the store at {} did not answer{}{}", joined_.address,
                                 keys.empty() ? "" : "; asked for ", keys)};
}

ClientStore::~ClientStore() {
  if (::getpid() != owner_) {
    return;  // the connection is the parent's, it says its own goodbye
  }
  const auto deadline = Deadline::after(kGoodbyeTime);
  Lock lock(mutex_);
  send(Frame{.id = 0, .body = Goodbye{}});
  while (!broken_ && !out_.empty() && wait_for(joined_.socket.get(), POLLOUT, deadline)) {
    flush();
  }
  // The server closes when it has heard it: from then on this rank may join anew.
  while (!broken_ && out_.empty() && wait_for(joined_.socket.get(), POLLIN, deadline)) {
    receive();
  }
}

}  // namespace

Result<std::shared_ptr<Store>> make_client_store(Joined joined) {
  FileDescriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) {
    return system_error("cannot join the job", errno);
  }
  return std::shared_ptr<Store>(std::make_shared<ClientStore>(std::move(joined), std::move(wake)));
}

}  // namespace tutti::rendezvous
