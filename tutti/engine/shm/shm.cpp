#include "tutti/engine/shm/shm.h"

#include <fcntl.h>

#include <cerrno>

#include <fmt/format.h>

#include "tutti/engine/shared_engine.h"
#include "tutti/memory/arena.h"
#include "tutti/memory/handover.h"
#include "tutti/memory/heap.h"

namespace tutti::engine {
namespace {

/// Processes reach what was allocated in symmetric memory.
class ShmReach final : public Reach {
 public:
  ShmReach(FileDescriptor fd, const memory::HeapLayout& layout, Rank rank) : heap_(std::move(fd), layout, rank) {}

  std::optional<std::uint64_t> place_of(const std::byte* data, std::size_t bytes) const override {
    return heap_.place_of(data, bytes);
  }
  Result<std::byte*> at(Rank rank, std::uint64_t place, std::size_t bytes) const override {
    return heap_.at(rank, place, bytes);
  }
  Result<std::byte*> allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
  void free(std::byte* data) override { heap_.free(data); }

 private:
  mutable memory::Heap heap_;  // looking at a peer's heap for the first time maps it
};

class ShmHolder final : public HubHolder {
 public:
  ShmHolder(memory::Arena arena, std::unique_ptr<memory::LifeMark> mark, std::shared_ptr<Reach> reach)
      : arena_(std::move(arena)), mark_(std::move(mark)), reach_(std::move(reach)) {}

  std::string_view name() const override { return "shm"; }
  std::byte* memory() const override { return arena_.data(); }
  std::shared_ptr<Reach> reach() const override { return reach_; }

 private:
  memory::Arena arena_;
  std::unique_ptr<memory::LifeMark> mark_;  // goes before the arena it writes to
  std::shared_ptr<Reach> reach_;
};

std::string key_of(const std::string& group) { return "tutti/shm/" + group; }

// The value in the store: "ok INVITATION", or "no SENTENCE" when the memory could not be had.
Result<memory::Arena> make_and_give(rendezvous::Store& store, const std::string& group, const HubLayout& layout,
                                    Deadline deadline) {
  // The hub, and behind it, sparse, a heap for each rank.
  const auto heaps = memory::HeapLayout::default_bytes_each() * static_cast<std::size_t>(layout.ranks);
  auto arena = memory::Arena::create(layout.total_bytes(), heaps);
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

Result<std::unique_ptr<SharedEngine>> make_shm_engine(rendezvous::Store& store, const std::string& group, Rank rank,
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
  const memory::HeapLayout heaps{
      .begin = layout.total_bytes(),
      .bytes_each = (arena.value().file_bytes() - layout.total_bytes()) / static_cast<std::size_t>(ranks),
      .ranks = ranks};
  FileDescriptor file(::fcntl(arena.value().fd(), F_DUPFD_CLOEXEC, 0));
  if (!file.valid()) {
    return system_error("cannot keep the descriptor of shared memory", errno);
  }
  auto reach = std::make_shared<ShmReach>(std::move(file), heaps, rank);
  auto holder = std::make_unique<ShmHolder>(std::move(arena).value(), std::move(mark).value(), std::move(reach));
  auto engine = std::make_unique<SharedEngine>(std::move(holder), layout, rank);
  // A first meeting: afterwards everybody is known to be here, and a rank that goes is one that died or left.
  if (auto met = engine->run({.op = Op::barrier}, deadline); !met) {
    return met.error();
  }
  return engine;
}

}  // namespace tutti::engine
