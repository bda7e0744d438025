#pragma once

#include <memory>
#include <mutex>

#include "tutti/engine/collectives.h"
#include "tutti/engine/engine.h"
#include "tutti/engine/hub.h"
#include "tutti/engine/mailbox.h"

namespace tutti::engine {

/// What keeps a hub's memory and this rank's mark of life for an engine: an arena of a host, or of this process.
class HubHolder {
 public:
  virtual ~HubHolder() = default;
  virtual std::string_view name() const = 0;
  virtual std::byte* memory() const = 0;
  virtual std::shared_ptr<Reach> reach() const = 0;
};

/// The engine of ranks that share memory, whether as threads or as processes: collectives and mailboxes over one
/// hub. `local` and `shm` differ only in where the memory comes from and in how a rank is known to be alive.
class SharedEngine final : public Engine {
 public:
  SharedEngine(std::unique_ptr<HubHolder> holder, HubLayout layout, Rank rank);

  std::string_view name() const override { return holder_->name(); }
  Rank rank() const override { return hub_.rank(); }
  int ranks() const override { return hub_.ranks(); }
  Status can(Op) const override { return {}; }
  std::shared_ptr<Reach> reach() const override { return holder_->reach(); }
  Status run(const Call& call, Deadline deadline) override { return collectives_.run(call, deadline); }
  plan::GroupShape shape() const override { return {.engine = std::string(name()), .hosts = {ranks()}}; }
  Status choose(Op op, const OpChoices& choices) override { return collectives_.choose(op, choices); }
  std::vector<Links::Sent> sent() const override { return collectives_.sent(); }
  void send(Rank to, std::uint64_t tag, ConstBlock bytes, Deadline deadline, Done done) override;
  void receive(Rank from, std::uint64_t tag, Block bytes, Deadline deadline, Received received) override;
  void abort(const Error& why) override { hub_.fail(why); }
  std::optional<Error> broken() const override { return hub_.broken(); }
  bool on_own_thread() const override { return mailbox_ && mailbox_->on_own_thread(); }

  /// For who builds on it a group of more than this host's ranks.
  Hub& hub() { return hub_; }
  Collectives& collectives() { return collectives_; }

 private:
  Mailbox& mailbox();

  std::unique_ptr<HubHolder> holder_;
  Hub hub_;
  std::shared_ptr<Reach> reach_;
  Collectives collectives_;
  std::once_flag mailbox_once_;
  std::unique_ptr<Mailbox> mailbox_;  // its thread is started by the first message
};

}  // namespace tutti::engine
