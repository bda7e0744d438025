#include "tutti/engine/mpi/watch.h"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <mutex>

#include <fmt/format.h>

namespace tutti::engine::mpi {
namespace {

constexpr std::string_view kGoodbye = "-";
constexpr std::string_view kStoreSays = "the job's store says: ";
constexpr std::chrono::seconds kPatience{1};

}  // namespace

Error in_operation(const Error& error, const std::string& operation) {
  return error.message.starts_with(kStoreSays)
             ? Error{error.code, fmt::format("{}: {}", operation, error.message), error.rank}
             : error;
}

// "CODE RANK MESSAGE", with numbers for the first two.
std::string pack(const Error& error) {
  return fmt::format("{} {} {}", static_cast<int>(error.code), error.rank ? to_int(*error.rank) : -1, error.message);
}

Error unpack_error(const std::string& text) {
  int code = 0;
  int rank = -1;
  const auto* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, code);
  const auto second = std::from_chars(std::min(first.ptr + 1, end), end, rank);
  if (first.ec != std::errc() || second.ec != std::errc() || code < 0 || code > static_cast<int>(Code::protocol)) {
    return {Code::protocol, "a rank told of an error in a way that cannot be read"};
  }
  return {static_cast<Code>(code), std::string(second.ptr < end ? second.ptr + 1 : end, end),
          rank < 0 ? std::nullopt : std::optional(Rank{rank})};
}

Watch::Watch(std::shared_ptr<rendezvous::Store> store, const std::string& group, Rank rank, int ranks, Broken broken)
    : store_(std::move(store)),
      prefix_("tutti/watch/" + group),
      rank_(rank),
      ranks_(ranks),
      broken_(std::move(broken)),
      thread_([this](const std::stop_token& stop) { wait(stop); }) {}

Watch::~Watch() {
  thread_.request_stop();
  (void)store_->set(key(rank_), std::string(kGoodbye), Deadline::after(kPatience));
}

std::string Watch::key(Rank rank) const { return fmt::format("{}/{}", prefix_, to_int(rank)); }

void Watch::wait(const std::stop_token& stop) {
  // Over a broken network nothing comes, not even this rank's own goodbye.
  constexpr std::chrono::seconds kSlice{2};
  auto told = store_->get(key(rank_), Deadline::after(kSlice));
  while (!told && told.error().code == Code::timed_out && !stop.stop_requested()) {
    told = store_->get(key(rank_), Deadline::after(kSlice));
  }
  if (!told) {
    // Who serves the store may just have been the first to be through. Whatever the others still have to do with each
    // other takes less than this.
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any never;
    never.wait_for(lock, stop, told.error().rank == Rank{0} ? kPatience : std::chrono::seconds(0),
                   [] { return false; });
    if (!stop.stop_requested()) {
      const auto& error = told.error();
      broken_({error.code, fmt::format("{}{}", kStoreSays, error.message), error.rank}, Source::store);
    }
  } else if (told.value() != kGoodbye) {
    broken_(unpack_error(told.value()), Source::rank);
  }
}

void Watch::tell(const Error& error) {
  rendezvous::Request request{.op = rendezvous::Op::set};
  for (int rank = 0; rank < ranks_; ++rank) {
    if (Rank{rank} != rank_) {
      request.keys.push_back(key(Rank{rank}));
      request.values.push_back(pack(error));
    }
  }
  (void)store_->call(request, Deadline::after(kPatience));
}

}  // namespace tutti::engine::mpi
