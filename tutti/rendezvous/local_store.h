#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "tutti/rendezvous/key_value.h"
#include "tutti/rendezvous/store.h"

namespace tutti::rendezvous {

/// A store inside one process, for ranks that are threads.
class LocalStore final : public Store {
 public:
  Result<Reply> call(const Request& request, Deadline deadline) override;

  /// Ends every waiting and later call with this error: a rank failed. The first one counts.
  void fail(const Error& error);

 private:
  struct Call {
    std::condition_variable ready;
    std::optional<Result<Reply>> result;
  };

  void deliver(std::vector<KeyValue::Answer>& answers);

  std::mutex mutex_;
  KeyValue keys_;
  std::unordered_map<Ticket, Call*> calls_;
  std::uint64_t next_ = 0;
  std::optional<Error> failed_;
};

std::shared_ptr<LocalStore> make_local_store();

}  // namespace tutti::rendezvous
