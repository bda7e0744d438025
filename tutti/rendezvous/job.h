#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/rendezvous/key_value.h"
#include "tutti/rendezvous/membership.h"
#include "tutti/rendezvous/wire.h"

namespace tutti::rendezvous {

/// What names a connection; never used twice.
enum class ConnectionId : std::uint64_t {};

/// What the server knows, without its sockets: who is a member, what each generation's keys are, which call waits on
/// which connection. Frames go in, frames for connections come out. One thread at a time.
class Job {
 public:
  /// A frame, encoded, for a connection.
  struct Out {
    ConnectionId to;
    std::string bytes;
  };

  static constexpr std::size_t kMaxWaiting = 4096;  ///< calls of one member that wait at the same time

  Job(int world_size, const std::string& version) : membership_(world_size, version) {}

  /// Makes the connection a member, or says why not.
  Result<Generation> hello(ConnectionId connection, const Hello& hello);

  /// A member's frame. Code::protocol when it is one that only servers send: the connection is to be dropped.
  /// Ok(false): it said goodbye and is no member any more.
  Result<bool> frame(ConnectionId connection, Frame frame, std::vector<Out>& out);

  /// A member's connection broke without a goodbye. Returns what is said about it, for the log.
  std::string lost(ConnectionId connection, std::vector<Out>& out);

  void declare_lost(Rank rank, const std::string& sentence, std::vector<Out>& out);

  std::size_t members() const { return members_.size(); }
  bool complete(Generation generation) const { return membership_.complete(generation); }
  /// Generations whose keys are kept.
  std::size_t generations() const { return stores_.size(); }

 private:
  struct Member {
    Rank rank;
    Generation generation;
    std::map<std::uint64_t, Ticket> waiting;  ///< request id -> ticket
  };
  struct Caller {
    ConnectionId connection;
    std::uint64_t request = 0;
  };

  void request(ConnectionId connection, std::uint64_t id, const Request& request, std::vector<Out>& out);
  void cancel(ConnectionId connection, std::uint64_t id, std::vector<Out>& out);
  void deliver(std::vector<KeyValue::Answer>& answers, std::vector<Out>& out);
  void remove(ConnectionId connection, bool in_peace, std::vector<Out>& out);
  void fail(Generation generation, std::vector<Out>& out);

  Membership membership_;
  std::unordered_map<ConnectionId, Member> members_;
  std::map<Generation, KeyValue> stores_;
  std::unordered_map<Ticket, Caller> callers_;
  std::uint64_t next_ticket_ = 0;
};

}  // namespace tutti::rendezvous
