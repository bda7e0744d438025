#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/rendezvous/store.h"

namespace tutti::rendezvous {

inline constexpr std::size_t kMaxKeyBytes = 64 << 10;
inline constexpr std::size_t kMaxValueBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxStoreBytes = std::size_t{1} << 30;

/// What names a request while it waits; its owner chooses it, one for each.
enum class Ticket : std::uint64_t {};

/// The keys, values, queues and barriers of one world, and who waits for what. No I/O, no clock, no threads: the server
/// and the local store both stand on it. One thread at a time.
class KeyValue {
 public:
  struct Answer {
    Ticket ticket;
    Result<Reply> result;
  };

  explicit KeyValue(std::size_t max_bytes = kMaxStoreBytes) : max_bytes_(max_bytes) {}

  /// Applies a request. What is answered by it is appended to `answers`: the request itself unless it has to wait, and
  /// all that waited for what it did.
  void apply(Ticket ticket, const Request& request, std::vector<Answer>& answers);

  /// Takes a waiting request back. The error (timed_out) says what it was missing; nullopt when it does not wait.
  std::optional<Error> cancel(Ticket ticket);

  /// Answers all that wait with an error.
  void fail_all(const Error& error, std::vector<Answer>& answers);

  std::size_t waiting() const { return waiters_.size(); }
  /// What keys, values, queues and waiting requests hold.
  std::size_t bytes() const { return bytes_; }

 private:
  struct Waiter {
    Request request;
    std::size_t bytes = 0;
    std::size_t next = 0;  ///< for get and wait: the keys before this one were seen
  };
  struct Barrier {
    std::int64_t participants = 0;
    std::vector<Ticket> arrived;
  };

  Result<std::optional<Reply>> perform(Ticket ticket, const Request& request, std::vector<Answer>& answers);
  Status put(const Request& request, std::vector<Answer>& answers);
  Status put_one(const std::string& key, std::string value, std::vector<Answer>& answers);
  Result<Reply> add(const Request& request, std::vector<Answer>& answers);
  Result<Reply> compare_set(const Request& request, std::vector<Answer>& answers);
  Status push(const Request& request, std::vector<Answer>& answers);
  Result<std::optional<Reply>> pop(const Request& request);
  Result<std::optional<Reply>> barrier(Ticket ticket, const Request& request, std::vector<Answer>& answers);
  Reply list() const;

  bool present(const std::string& key) const;
  bool erase(const std::string& key);
  /// The first key at or after `from`, going round once, that is not there; nullopt when all are.
  std::optional<std::size_t> first_missing(const Request& request, std::size_t from) const;
  Result<Reply> values_of(const Request& request) const;
  Result<std::optional<Reply>> park(Ticket ticket, const Request& request);
  void forget(Ticket ticket);
  Result<Reply> finish_wait(const Request& request) const;
  void wake(const std::string& key, std::vector<Answer>& answers);
  std::optional<std::string> take_front(const std::string& queue);
  Status room_for(std::size_t more) const;
  std::string describe_missing(const Waiter& waiter) const;

  std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::unordered_map<std::string, std::string> values_;
  std::unordered_map<std::string, std::deque<std::string>> queues_;
  std::unordered_map<std::string, Barrier> barriers_;
  std::unordered_map<Ticket, Waiter> waiters_;
  std::unordered_map<std::string, std::vector<Ticket>> waiting_for_;  ///< each waiter under one key that is missing
};

}  // namespace tutti::rendezvous
