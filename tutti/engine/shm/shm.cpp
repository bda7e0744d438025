#include "tutti/engine/shm/shm.h"

#include <fmt/format.h>

#include "tutti/engine/shared_engine.h"
#include "tutti/memory/arena.h"
#include "tutti/memory/handover.h"

namespace tutti::engine {
namespace {

class ShmHolder final : public HubHolder {
 public:
  ShmHolder(memory::Arena arena, std::unique_ptr<memory::LifeMark> mark)
      : arena_(std::move(arena)), mark_(std::move(mark)) {}

  std::string_view name() const override { return "shm"; }
  std::byte* memory() const override { return arena_.data(); }

 private:
  memory::Arena arena_;
  std::unique_ptr<memory::LifeMark> mark_;  // goes before the arena it writes to
};

std::string key_of(const std::string& group) { return "tutti/shm/" + group; }

// The value in the store: "ok INVITATION", or "no SENTENCE" when the memory could not be had.
Result<memory::Arena> make_and_give(rendezvous::Store& store, const std::string& group, const HubLayout& layout,
                                    Deadline deadline) {
  auto arena = memory::Arena::create(layout.total_bytes());
  auto giver = memory::Giver::open();
  if (!arena || !giver) {
    const auto& error = arena ? giver.error() : arena.error();
    (void)store.set(key_of(group), "no " + error.message, deadline);
    return error;
  }
  if (auto told = store.set(key_of(group), "ok " + giver.value().invitation(), deadline); !told) {
    return told.error();
  }
  if (auto given = giver.value().give(arena.value().fd(), layout.ranks - 1, deadline); !given) {
    return given.error();
  }
  return std::move(arena).value();
}

Result<memory::Arena> take_from_maker(rendezvous::Store& store, const std::string& group, const HubLayout& layout,
                                      Deadline deadline) {
  const auto invitation = store.get(key_of(group), deadline);
  if (!invitation) {
    return invitation.error();
  }
  if (invitation.value().starts_with("no ")) {
    return Error{Code::resource_exhausted,
                 "rank 0 could not make the group's shared memory: " + invitation.value().substr(3), Rank{0}};
  }
  auto fd = memory::take(invitation.value().substr(3), deadline);
  if (!fd) {
    return fd.error();
  }
  return memory::Arena::attach(std::move(fd).value(), layout.total_bytes());
}

}  // namespace

Result<std::unique_ptr<Engine>> make_shm_engine(rendezvous::Store& store, const std::string& group, Rank rank,
                                                int ranks, Deadline deadline) {
  const auto layout = HubLayout::for_ranks(ranks);
  auto arena =
      rank == Rank{0} ? make_and_give(store, group, layout, deadline) : take_from_maker(store, group, layout, deadline);
  if (!arena) {
    auto error = arena.error();
    error.message = fmt::format("group '{}', rank {} of {}: {}", group, to_int(rank), ranks, error.message);
    return error;
  }
  Hub hub(arena.value().data(), layout, rank);
  auto mark = memory::LifeMark::hold(hub.life(rank));
  if (!mark) {
    return mark.error();
  }
  auto holder = std::make_unique<ShmHolder>(std::move(arena).value(), std::move(mark).value());
  auto engine = std::make_unique<SharedEngine>(std::move(holder), layout, rank);
  // A first meeting: afterwards everybody is known to be here, and a rank that goes is one that died or left.
  if (auto met = engine->run({.op = Op::barrier}, deadline); !met) {
    return met.error();
  }
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace tutti::engine
