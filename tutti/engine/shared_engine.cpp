#include "tutti/engine/shared_engine.h"

#include <fmt/format.h>

namespace tutti::engine {

SharedEngine::SharedEngine(std::unique_ptr<HubHolder> holder, HubLayout layout, Rank rank)
    : holder_(std::move(holder)),
      hub_(holder_->memory(), layout, rank),
      reach_(holder_->reach()),
      collectives_(hub_, *reach_) {
  hub_.tell_cores();
}

Mailbox& SharedEngine::mailbox() {
  std::call_once(mailbox_once_, [this] { mailbox_ = std::make_unique<Mailbox>(hub_); });
  return *mailbox_;
}

void SharedEngine::send(Rank to, std::uint64_t tag, ConstBlock bytes, Deadline deadline, Done done) {
  if (to_int(to) < 0 || to_int(to) >= hub_.ranks() || to == hub_.rank()) {
    done(
        Error{Code::invalid_argument, fmt::format("send: rank {} cannot send to rank {}", to_int(rank()), to_int(to))});
    return;
  }
  mailbox().send(to, tag, bytes, deadline, std::move(done));
}

void SharedEngine::receive(Rank from, std::uint64_t tag, Block bytes, Deadline deadline, Received received) {
  if (from != kAnyRank && (to_int(from) < 0 || to_int(from) >= hub_.ranks() || from == hub_.rank())) {
    received(Error{Code::invalid_argument,
                   fmt::format("receive: rank {} cannot receive from rank {}", to_int(rank()), to_int(from))});
    return;
  }
  mailbox().receive(from, tag, bytes, deadline, std::move(received));
}

}  // namespace tutti::engine
