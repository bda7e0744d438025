#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/rendezvous/job.h"
#include "tutti/rendezvous/rate_limit.h"
#include "tutti/rendezvous/server.h"
#include "tutti/rendezvous/session.h"
#include "tutti/rendezvous/socket.h"

namespace tutti::rendezvous {

/// A server's one thread: waits for its sockets, moves bytes between sessions and the job. All but `Shared` belongs to
/// the thread that runs it.
class Loop {
 public:
  struct Shared {  // between the loop and the callers of Server
    std::atomic<std::uint64_t> accepted{0}, rejected{0}, strangers{0}, members{0};
    std::mutex mutex;
    std::vector<std::pair<Rank, std::string>> lost;
    std::map<Rank, std::optional<Deadline::Clock::time_point>> left;  // of all who ever joined; nullopt: is in
    FileDescriptor wake;
  };

  /// `tls` is needed when one of `listening` is tcp. `shared` must outlive the loop.
  Loop(ServerOptions options, std::vector<Listening> listening, std::shared_ptr<const Tls> tls, Shared& shared);

  Status set_up();
  void run(const std::stop_token& stop);

 private:
  using Clock = Deadline::Clock;

  // What epoll tells us: 0 is the wake-up, then the listeners, then the sessions.
  std::uint64_t first_session() const { return 1 + listening_.size(); }
  Status watch(int fd, std::uint64_t token);

  void accept_from(Listening& listening);
  bool make_room(int error_number, int listener);
  void admit_socket(FileDescriptor socket, Address::Kind kind);
  void set_accepting(bool accepting);
  void close_listeners();

  void serve(Session& session);
  Status serve_hello(Session& session);
  Status serve_frames(Session& session);
  void send(const std::vector<Job::Out>& outs);
  void settle(Session& session);
  void turn_away(Session& session, const std::string& reason);
  void end(Session& session, const Error& why);
  void forget(Session& session);
  void hear_of_losses();
  void end_slow_strangers();
  int poll_timeout() const;
  void log_refusal(const std::string& peer, const std::string& reason);
  void publish_counts();

  ServerOptions options_;
  std::vector<Listening> listening_;
  std::shared_ptr<const Tls> tls_;
  Shared& shared_;
  Job job_;
  std::array<char, 64 << 10> scratch_{};
  Door door_;
  FileDescriptor epoll_;
  FileDescriptor reserve_;  ///< given up for a moment when there are no descriptors left
  std::unordered_map<ConnectionId, std::unique_ptr<Session>> sessions_;
  std::set<ConnectionId> strangers_;  ///< in order of arrival
  std::uint64_t next_id_ = 0;
  RateLimit log_limit_{5};
  bool accepting_ = true;
  Clock::time_point accept_again_{};
};

}  // namespace tutti::rendezvous
