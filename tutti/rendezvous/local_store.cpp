#include "tutti/rendezvous/local_store.h"

namespace tutti::rendezvous {

Result<Reply> LocalStore::call(const Request& request, Deadline deadline) {
  std::unique_lock lock(mutex_);
  if (failed_) {
    return *failed_;
  }
  Call mine;
  const Ticket ticket{next_++};
  calls_.emplace(ticket, &mine);
  std::vector<KeyValue::Answer> answers;
  keys_.apply(ticket, request, answers);
  deliver(answers);
  const auto answered = [&] { return mine.result.has_value(); };
  if (deadline.is_never()) {
    mine.ready.wait(lock, answered);
  } else if (!mine.ready.wait_until(lock, deadline.at(), answered)) {
    mine.result = *keys_.cancel(ticket);
  }
  calls_.erase(ticket);
  return std::move(*mine.result);
}

void LocalStore::fail(const Error& error) {
  const std::scoped_lock lock(mutex_);
  if (failed_) {
    return;
  }
  failed_ = error;
  std::vector<KeyValue::Answer> answers;
  keys_.fail_all(error, answers);
  deliver(answers);
}

void LocalStore::deliver(std::vector<KeyValue::Answer>& answers) {
  for (auto& [ticket, result] : answers) {
    auto& call = *calls_.at(ticket);
    call.result = std::move(result);
    call.ready.notify_one();
  }
}

std::shared_ptr<LocalStore> make_local_store() { return std::make_shared<LocalStore>(); }

}  // namespace tutti::rendezvous
