#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"

namespace tutti::rendezvous {

/// What a store can be asked. The numbers are the wire format's: they do not change.
enum class Op : std::uint8_t {
  set = 1,          ///< keys[i] = values[i], all at once
  get = 2,          ///< waits for all keys, then their values
  wait = 3,         ///< waits for all keys
  add = 4,          ///< keys[0] += number (a decimal text, 0 when absent) -> number
  compare_set = 5,  ///< values = {expected, desired} -> the value there is now
  erase = 6,        ///< -> number = 1 when the key was there
  check = 7,        ///< -> number = 1 when all keys are there
  count = 8,        ///< -> number of keys
  list = 9,         ///< -> values = all keys
  append = 10,      ///< keys[0] += values[0] as bytes
  push = 11,        ///< onto queue keys[0]
  pop = 12,         ///< from queue keys[0]; number = 1: wait for one, 0: not_found when empty
  queue_length = 13,
  barrier = 14,  ///< waits until `number` callers have come to keys[0]; reusable
};

struct Request {
  Op op = Op::count;
  std::vector<std::string> keys = {};
  std::vector<std::string> values = {};
  std::int64_t number = 0;
  bool operator==(const Request&) const = default;
};

struct Reply {
  std::vector<std::string> values = {};
  std::int64_t number = 0;
  bool operator==(const Reply&) const = default;
};

/// Keys and values that all ranks of a job see; how they find each other. Values are bytes.
/// Any thread, several at once; a call that waits holds up no other. Every call ends by its deadline with
/// Code::timed_out, naming the keys that are missing; with Code::peer_lost when the store is gone.
class Store {
 public:
  virtual ~Store() = default;

  /// The one thing an implementation does; what follows are its everyday forms.
  virtual Result<Reply> call(const Request& request, Deadline deadline) = 0;

  Status set(const std::string& key, std::string value, Deadline deadline);
  Result<std::string> get(const std::string& key, Deadline deadline);
  Result<std::vector<std::string>> get_all(const std::vector<std::string>& keys, Deadline deadline);
  Status wait(const std::vector<std::string>& keys, Deadline deadline);
  Result<std::int64_t> add(const std::string& key, std::int64_t delta, Deadline deadline);
  Result<bool> erase(const std::string& key, Deadline deadline);
  Status barrier(const std::string& key, int participants, Deadline deadline);
};

}  // namespace tutti::rendezvous
