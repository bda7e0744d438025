#include "tutti/engine/local/local.h"

#include <new>

#include <fmt/format.h>

#include "tutti/engine/shared_engine.h"

namespace tutti::engine {
namespace {

/// Threads see the same addresses: every tensor can be reached, and the place of a byte is its address.
class LocalReach final : public Reach {
 public:
  std::optional<std::uint64_t> place_of(const std::byte* data, std::size_t) const override {
    return reinterpret_cast<std::uintptr_t>(data);
  }
  Result<std::byte*> at(Rank, std::uint64_t place, std::size_t) const override {
    return reinterpret_cast<std::byte*>(place);  // NOLINT(performance-no-int-to-ptr): it was one
  }
  Result<std::byte*> allocate(std::size_t bytes) override {
    constexpr std::align_val_t kLine{64};
    auto* data = ::operator new(bytes, kLine, std::nothrow);
    if (data == nullptr) {
      return Error{Code::resource_exhausted, fmt::format("cannot allocate {} MiB of memory", bytes >> 20)};
    }
    return static_cast<std::byte*>(data);
  }
  void free(std::byte* data) override { ::operator delete(data, std::align_val_t{64}); }
};

class LocalHolder final : public HubHolder {
 public:
  LocalHolder(std::shared_ptr<memory::Arena> arena, const HubLayout& layout, Rank rank)
      : arena_(std::move(arena)), life_(Hub(arena_->data(), layout, rank).life(rank)) {
    memory::mark_here(life_);
  }
  ~LocalHolder() override { memory::mark_left(life_); }

  std::string_view name() const override { return "local"; }
  std::byte* memory() const override { return arena_->data(); }
  std::shared_ptr<Reach> reach() const override { return reach_; }

 private:
  std::shared_ptr<memory::Arena> arena_;
  memory::LifeWord& life_;
  std::shared_ptr<Reach> reach_ = std::make_shared<LocalReach>();
};

}  // namespace

Result<std::shared_ptr<memory::Arena>> LocalMemories::get(const std::string& group, const HubLayout& layout) {
  const std::scoped_lock lock(mutex_);
  if (failed_) {
    return *failed_;
  }
  auto [found, is_new] = entries_.try_emplace(group);
  auto& entry = found->second;
  if (is_new) {
    auto made = memory::Arena::create_private(layout.total_bytes());
    if (!made) {
      entries_.erase(found);
      return made.error();
    }
    auto arena = std::make_shared<memory::Arena>(std::move(made).value());
    entry = {.layout = layout, .arena = arena, .kept = arena, .to_come = layout.ranks};
  }
  auto arena = entry.arena.lock();
  require(arena != nullptr && entry.to_come > 0, "a group's name is used once, and each of its ranks comes once");
  if (--entry.to_come == 0) {
    entry.kept.reset();
  }
  return arena;
}

void LocalMemories::fail(const Error& error) {
  const std::scoped_lock lock(mutex_);
  failed_ = failed_ ? failed_ : error;
  for (const auto& [group, entry] : entries_) {
    if (const auto arena = entry.arena.lock()) {
      Hub(arena->data(), entry.layout, Rank{0}).fail(*failed_);
    }
  }
}

Result<std::unique_ptr<Engine>> make_local_engine(LocalMemories& memories, const std::string& group, Rank rank,
                                                  int ranks) {
  const auto layout = HubLayout::for_ranks(ranks);
  auto arena = memories.get(group, layout);
  if (!arena) {
    return arena.error();
  }
  auto holder = std::make_unique<LocalHolder>(std::move(arena).value(), layout, rank);
  return std::unique_ptr<Engine>(std::make_unique<SharedEngine>(std::move(holder), layout, rank));
}

}  // namespace tutti::engine
