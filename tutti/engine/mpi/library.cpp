#include "tutti/engine/mpi/library.h"

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tutti/engine/mpi/plugins.h"
#include "tutti/engine/mpi/pulse.h"

namespace tutti::engine::mpi {
namespace {

/// MPI is one for a process, whoever asks; so is what stands for it.
struct Opened {
  std::mutex mutex;
  std::shared_ptr<Library> library;
};

Opened& opened() {
  static Opened opened;
  return opened;
}

}  // namespace

Result<Api*> Library::load(const LibraryOptions& options) {
  const auto plugin = choose_plugin(find_plugins(), options.wanted, loaded_mpi(), options.launcher);
  if (!plugin) {
    return plugin.error();
  }
  return load_plugin(plugin.value());
}

Status Library::prepare(const LibraryOptions& options) {
  auto& kept = opened();
  const std::scoped_lock lock(kept.mutex);
  if (!kept.library) {
    const auto api = load(options);
    return api ? Status() : Status(api.error());
  }
  if (auto why = kept.library->unusable()) {
    return *why;
  }
  if (kept.library->program_ != options.communicator) {
    return Error{Code::unsupported,
                 "Tutti works in one communicator of a process, and was given another one before: make groups of its "
                 "world instead"};
  }
  return {};
}

Result<std::shared_ptr<Library>> Library::open(const LibraryOptions& options, Deadline deadline) {
  if (auto ready = prepare(options); !ready) {
    return ready.error();
  }
  auto& kept = opened();
  const std::scoped_lock lock(kept.mutex);
  if (kept.library) {
    return kept.library;
  }
  const auto api = load(options);
  if (!api) {
    return api.error();
  }
  const std::shared_ptr<Library> library(new Library(*api.value()));
  kept.library = library;  // also when it is stuck: its thread still uses it, and nobody else may
  if (auto started = library->start(options, deadline); !started) {
    kept.library = library->stuck_ ? library : nullptr;
    return started.error();
  }
  return library;
}

Status Library::start(const LibraryOptions& options, Deadline deadline) {
  version_ = api_->version();
  program_ = options.communicator;
  if (api_->is_finalized()) {
    return Error{Code::unsupported, "the program has ended MPI (MPI_Finalize): what uses it has to come before"};
  }
  if (!api_->is_initialized()) {
    if (auto done = block("MPI_Init_thread", deadline, [this] { return api_->initialize(); }); !done) {
      return done;
    }
    ours_ = true;
    std::atexit(&Library::end_at_exit);
  }
  shaky_ = api_->level() < ThreadLevel::serialized;
  shared_ = api_->level() == ThreadLevel::multiple;
  if (ours_ && shaky_) {
    return Error{Code::unsupported, fmt::format("{} does not let threads take turns in calling it", version_)};
  }
  return block("MPI_Comm_dup", deadline, [this, program = options.communicator] { return make_base(program); });
}

int Library::make_base(std::optional<std::uint64_t> program) {
  if (const int error = program ? api_->copy(Communicator{*program}, base_) : api_->copy_world(base_); error != 0) {
    return error;
  }
  rank_ = api_->rank(base_);
  size_ = api_->size(base_);
  highest_tag_ = api_->highest_tag();
  started_ = true;
  std::random_device random;
  std::array<std::uint32_t, 4> job{random(), random(), random(), random()};
  const int error = api_->broadcast(base_, reinterpret_cast<std::byte*>(job.data()), sizeof job, 0);
  job_ = fmt::format("{:08x}", fmt::join(job, ""));
  return error;
}

Status Library::block(const std::string& what, Deadline deadline, std::function<int()> function) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<int> result;
  };
  const auto shared = std::make_shared<Shared>();
  std::thread thread([this, shared, function = std::move(function)] {
    const int result = call(function);
    const std::scoped_lock told(shared->mutex);
    shared->result = result;
    shared->changed.notify_all();
  });
  std::unique_lock waiting(shared->mutex);
  const auto there = [&] { return shared->result.has_value(); };
  if (deadline.is_never()) {
    shared->changed.wait(waiting, there);
  } else if (!shared->changed.wait_until(waiting, deadline.at(), there)) {
    stuck_ = true;
    thread.detach();
    return Error{Code::timed_out,
                 fmt::format("the deadline passed in {} ({}): some rank has not come to it", what, version_)};
  }
  waiting.unlock();
  thread.join();
  return *shared->result == 0 ? Status() : Status(error(what, *shared->result));
}

void Library::drop(Requests& requests) {
  (void)call([&] {
    writes_on_ = !requests.cancel_all();
    return 0;
  });
}

void Library::nudge() {
  const std::unique_lock held(mutex_, std::try_to_lock);
  const bool may = ours_ || shared_ || under_way_ != 0;
  if (held && may && started_ && orderly_ && !unusable()) {
    api_->progress(base_);
  }
}

std::shared_ptr<Pulse> Library::pulse() {
  const std::lock_guard lock(pulse_mutex_);
  auto pulse = pulse_.lock();
  if (!pulse) {
    pulse_ = pulse = std::make_shared<Pulse>(*this);
  }
  return pulse;
}

Library::UnderWay::~UnderWay() {
  if (--library_.under_way_ != 0 || library_.ours_ || library_.shared_) {
    return;
  }
  // The program may call MPI now: a nudge that has begun ends first.
  (void)library_.call([] { return 0; });
}

std::optional<Error> Library::unusable() const {
  if (writes_on_) {
    return Error{Code::aborted,
                 fmt::format("an operation of {} that failed may still write into its memory: MPI is not "
                             "called any more in this process",
                             version_)};
  }
  if (stuck_) {
    return Error{Code::aborted, fmt::format("an earlier call of {} did not come back", version_)};
  }
  if (ended_ || (!ours_ && api_->is_finalized())) {
    return Error{Code::aborted, fmt::format("{} has been ended in this process", version_)};
  }
  return std::nullopt;
}

Error Library::error(const std::string& what, int code) const {
  if (code == kUnusable) {
    return unusable().value_or(Error{Code::aborted, what + ": MPI cannot be used any more"});
  }
  return {Code::system, fmt::format("{} ({}): {}", what, version_, api_->error_text(code))};
}

void Library::end_at_exit() {
  if (auto& library = opened().library) {
    library->end();
  }
}

void Library::end() {
  if (unusable() || !orderly_) {
    return;
  }
  constexpr std::chrono::seconds kPatience{10};
  (void)block("MPI_Finalize", Deadline::after(kPatience), [this] {
    ended_ = true;
    api_->finalize();
    return 0;
  });
}

}  // namespace tutti::engine::mpi
