#include "tutti/engine/progress.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

namespace tutti::engine {

void Progress::end_pending() {
  const std::scoped_lock lock(mutex_);
  if (engine_ && (busy() || !queue_.empty())) {
    engine_->abort({Code::aborted,
                    fmt::format("rank {} closed the group with operations still under way", to_int(engine_->rank())),
                    engine_->rank()});
  }
}

void Progress::abort(const Error& why) {
  const std::scoped_lock lock(mutex_);
  if (engine_) {
    engine_->abort(why);
  }
}

void Progress::stop() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    watch();
    changed_.notify_all();
  }
  end_pending();
}

void Progress::close() {
  stop();
  std::call_once(closed_, [this] {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !busy(); });  // on a caller's thread, perhaps
    lock.unlock();
    if (thread_.joinable()) {
      thread_.join();
    }
    lock.lock();
    const auto engine = std::move(engine_);
    lock.unlock();
  });
}

bool Progress::on_own_thread() const {
  const std::scoped_lock lock(mutex_);
  return std::this_thread::get_id() == thread_.get_id() || (engine_ && engine_->on_own_thread());
}

void Progress::submit(Call call, Deadline deadline, Done done) {
  submit([call = std::move(call), deadline](Engine& engine) { return engine.run(call, deadline); }, std::move(done));
}

void Progress::submit(Task task, Done done) {
  const std::scoped_lock lock(mutex_);
  if (!thread_.joinable()) {
    thread_ = std::jthread([this] { loop(); });
  }
  queue_.push_back({std::move(task), std::move(done)});
  ++unfinished_;
  watch();
  changed_.notify_all();
}

/// With the lock, as the next.
void Progress::stop_watching() {
  if (queue_.empty() && watchers_ == 0 && !closing_) {
    gate_ &= ~kWatched;
  }
}

void Progress::set_busy(bool busy) {
  if (busy) {
    gate_ |= kBusy;
  } else {
    gate_ &= ~kBusy;
  }
}

/// No exception may end the process: one in the middle of a collective leaves ranks out of step, so it breaks the
/// group. None may leave the gate busy, either.
template <class Run>
Status Progress::guarded(Run&& run) {
  try {
    return run(*engine_);
  } catch (const std::exception& exception) {
    return break_group(exception.what());
  } catch (...) {
    return break_group("with something that is no std::exception");
  }
}

Status Progress::break_group(const char* why) {
  try {
    const Error error{Code::resource_exhausted,
                      fmt::format("an operation on rank {} failed: {}", to_int(engine_->rank()), why), engine_->rank()};
    engine_->abort(error);
    return error;
  } catch (...) {
    return Error{Code::resource_exhausted, "out of memory"};  // none to say more
  }
}

namespace {

/// Whether it was never begun, so that the other ranks do not know of it.
bool was_refused(const Status& status) {
  return !status && (status.error().code == Code::invalid_argument || status.error().code == Code::unsupported);
}

void add(std::atomic<std::uint64_t>& number, int change) {  // one writes at a time: no need for an atomic addition
  number.store(number.load(std::memory_order_relaxed) + static_cast<std::uint64_t>(change), std::memory_order_relaxed);
}

}  // namespace

template <class Run>
Status Progress::run_here_or_queue(Run&& run) {
  unsigned idle = 0;
  if (!gate_.compare_exchange_strong(idle, kBusy, std::memory_order_acquire, std::memory_order_relaxed)) {
    return run_in_turn(run);
  }
  add(runs_at_once_, 1);
  auto status = guarded(run);
  if (was_refused(status)) {
    add(runs_at_once_, -1);
  }
  unsigned alone = kBusy;
  if (!gate_.compare_exchange_strong(alone, 0, std::memory_order_release, std::memory_order_relaxed)) {
    const std::scoped_lock lock(mutex_);
    set_busy(false);
    changed_.notify_all();
  }
  return status;
}

template <class Run>
Status Progress::run_in_turn(Run&& run) {
  std::unique_lock lock(mutex_);
  if (closing_) {
    return Error{Code::aborted, "this group was shut down"};
  }
  const bool own = std::this_thread::get_id() == thread_.get_id();
  if (!own && !thread_.joinable()) {
    thread_ = std::jthread([this] { loop(); });
  }
  std::optional<Status> result;
  queue_.push_back({[&run](Engine& engine) { return run(engine); },
                    [&](const Status& status) {
                      const std::scoped_lock inner(mutex_);
                      result = status;
                      changed_.notify_all();
                    }});
  ++unfinished_;
  add(runs_in_turn_, 1);
  watch();
  changed_.notify_all();
  while (!result) {
    if (own && !busy() && !queue_.empty()) {
      process_front(lock);  // a callback that waits: nobody else would do what is before it
    } else {
      changed_.wait(lock);
    }
  }
  if (was_refused(*result)) {
    add(runs_in_turn_, -1);
  }
  return *result;
}

Status Progress::run(const Call& call, Deadline deadline) {
  return run_here_or_queue([&](Engine& engine) { return engine.run(call, deadline); });
}

Status Progress::run(const Task& task) {
  return run_here_or_queue([&](Engine& engine) { return task(engine); });
}

void Progress::wait_idle() {
  std::unique_lock lock(mutex_);
  ++watchers_;
  watch();
  changed_.wait(lock, [this] { return unfinished_ == 0 && !busy(); });
  --watchers_;
  stop_watching();
}

void Progress::process_front(std::unique_lock<std::mutex>& lock) {
  auto item = std::move(queue_.front());
  queue_.pop_front();
  set_busy(true);
  lock.unlock();
  const auto status = guarded(item.task);
  lock.lock();
  set_busy(false);  // who was told the end may close the group: nothing is under way any more
  stop_watching();
  changed_.notify_all();
  lock.unlock();
  item.done(status);
  item = Item{};  // what the callback held goes before the next
  lock.lock();
  --unfinished_;
  changed_.notify_all();
}

void Progress::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !busy() && (closing_ || !queue_.empty()); });
    if (queue_.empty()) {
      return;
    }
    process_front(lock);
  }
}

}  // namespace tutti::engine
