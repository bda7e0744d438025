#include "tutti/memory/heap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "tutti/memory/arena.h"

namespace tutti::memory {
namespace {

constexpr std::size_t kStep = std::size_t{16} << 20;   // space is reserved in pieces of at least this
constexpr std::size_t kKept = std::size_t{256} << 20;  // free space that is not given back to the system

}  // namespace

std::size_t HeapLayout::default_bytes_each() {
  constexpr auto kGibibyte = std::size_t{1} << 30;
  const auto memory =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return std::max(memory / kGibibyte + 1, std::size_t{1}) * kGibibyte;
}

Heap::Heap(FileDescriptor fd, const HeapLayout& layout, Rank rank)
    : fd_(std::move(fd)),
      layout_(layout),
      rank_(rank),
      process_(::getpid()),
      maps_(static_cast<std::size_t>(layout.ranks)) {}

Heap::~Heap() {
  for (auto& mapped : maps_) {
    if (auto* data = mapped.load()) {
      ::munmap(data - HeapLayout::skew(to_rank(static_cast<std::size_t>(&mapped - maps_.data()))), layout_.bytes_each);
    }
  }
}

Result<std::byte*> Heap::map(Rank rank) {
  auto& mapped = maps_[to_index(rank)];
  if (auto* data = mapped.load(std::memory_order_acquire)) {
    return data;
  }
  // A mapping of the whole heap: addresses only, memory comes with what its rank reserves.
  void* data = ::mmap(nullptr, layout_.bytes_each, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_.get(),
                      static_cast<off_t>(layout_.offset(rank)));
  if (data == MAP_FAILED) {
    auto error =
        system_error(fmt::format("cannot map {} GiB of addresses for the symmetric memory of rank {} (is there "
                                 "a limit on address space, `ulimit -v`?)",
                                 layout_.bytes_each >> 30, to_int(rank)),
                     errno);
    error.code = Code::resource_exhausted;
    return error;
  }
  auto* base = static_cast<std::byte*>(data) + HeapLayout::skew(rank);
  std::byte* none = nullptr;
  if (!mapped.compare_exchange_strong(none, base)) {
    ::munmap(data, layout_.bytes_each);
    return none;
  }
  return base;
}

Status Heap::grow(std::size_t bytes) {
  const auto tail = free_.tail_bytes(reserved_);
  const auto missing = std::max(FreeList::rounded(bytes) + FreeList::kPage - std::min(tail, bytes), kStep);
  const auto step = (missing + FreeList::kPage - 1) / FreeList::kPage * FreeList::kPage;
  if (step > layout_.usable(rank_) - reserved_) {
    return Error{
        Code::resource_exhausted,
        fmt::format("symmetric memory of {} MiB cannot be had: the heap of this rank ends at {} MiB, and {} MiB "
                    "are in use",
                    bytes >> 20, layout_.bytes_each >> 20, in_use_ >> 20)};
  }
  if (auto reserved = reserve(fd_.get(), offset_of(reserved_), step); !reserved) {
    return reserved;
  }
  free_.give(reserved_, step);
  reserved_ += step;
  return {};
}

Result<std::byte*> Heap::allocate(std::size_t bytes) {
  if (::getpid() != process_) {
    return Error{Code::unsupported,
                 "this process was forked after the group was made: its symmetric memory is the parent's"};
  }
  if (bytes > layout_.bytes_each) {
    return Error{Code::resource_exhausted,
                 fmt::format("symmetric memory of {} MiB was asked for, and this machine has {}", bytes >> 20,
                             layout_.bytes_each >> 20)};
  }
  const auto base = map(rank_);
  if (!base) {
    return base.error();
  }
  const std::scoped_lock lock(mutex_);
  auto offset = free_.take(bytes);
  if (!offset) {
    if (auto grown = grow(bytes); !grown) {
      return grown.error();
    }
    offset = free_.take(bytes);
    require(offset.has_value(), "what was reserved for a block holds it");
  }
  taken_.emplace(*offset, bytes);
  in_use_ += FreeList::rounded(bytes);
  return base.value() + *offset;
}

void Heap::free(std::byte* data) {
  if (::getpid() != process_) {
    return;  // a forked child drops its copy of the owner; the memory is still the parent's
  }
  const std::scoped_lock lock(mutex_);
  const auto offset = static_cast<std::size_t>(data - maps_[to_index(rank_)].load());
  const auto found = taken_.find(offset);
  require(found != taken_.end(), "only what was allocated here is freed, and once");
  in_use_ -= FreeList::rounded(found->second);
  free_.give(offset, found->second);
  taken_.erase(found);
  shrink();
}

/// Memory that was needed once and no longer is goes back to the system, from the end.
void Heap::shrink() {
  const auto tail = free_.take_tail(reserved_, 2 * kKept);
  if (!tail) {
    return;
  }
  const auto kept = (*tail + kKept + FreeList::kPage - 1) / FreeList::kPage * FreeList::kPage;
  free_.give(*tail, kept - *tail);
  ::fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_of(kept)),
              static_cast<off_t>(reserved_ - kept));
  reserved_ = kept;
}

std::optional<std::uint64_t> Heap::place_of(const std::byte* data, std::size_t bytes) const {
  const auto* base = maps_[to_index(rank_)].load(std::memory_order_acquire);
  if (base == nullptr || data < base || data + bytes > base + layout_.usable(rank_)) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(data - base);
}

Result<std::byte*> Heap::at(Rank rank, std::uint64_t place, std::size_t bytes) {
  if (place > layout_.usable(rank) || bytes > layout_.usable(rank) - place) {
    return Error{Code::protocol, fmt::format("rank {} named a place outside of its symmetric memory", to_int(rank)),
                 rank};
  }
  const auto base = map(rank);
  if (!base) {
    return base.error();
  }
  return base.value() + place;
}

std::size_t Heap::bytes_in_use() const {
  const std::scoped_lock lock(mutex_);
  return in_use_;
}

std::size_t Heap::bytes_reserved() const {
  const std::scoped_lock lock(mutex_);
  return reserved_;
}

}  // namespace tutti::memory
