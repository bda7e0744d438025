#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace tutti {

/// Threads that run what users hang on the end of an operation. Such a callback may wait for another operation, so none
/// runs on a thread that moves operations forward, and there is always a thread for the next one: each takes an idle
/// thread, or a new one. Idle ones go after a while. Any thread.
class Callbacks {
 public:
  Callbacks();
  ~Callbacks() { stop(); }
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

  /// Does not block. What the task throws becomes a warning. After `stop`, or where no thread is to be had, it is run
  /// here.
  void run(std::function<void()> task);

  /// Waits until all that were handed over so far are over; one that the calling thread is in does not count.
  void wait_idle();

  /// What a function throws becomes a warning.
  static void run_guarded(const std::function<void()>& function);

  /// Ends the threads when what they run is over, and waits for them, but for the calling one.
  void stop();

 private:
  struct State;

  std::shared_ptr<State> state_;  // a callback may be the last to hold what holds this
};

/// Calls a function for one thing after the other, in the order in which they came, on threads of `Callbacks`.
template <class Thing>
class Told : public std::enable_shared_from_this<Told<Thing>> {
 public:
  Told(std::function<void(Thing)> function, std::shared_ptr<Callbacks> callbacks)
      : function_(std::move(function)), callbacks_(std::move(callbacks)) {}

  /// Does not block.
  void tell(Thing thing) {
    {
      const std::scoped_lock lock(mutex_);
      things_.push_back(std::move(thing));
      if (telling_) {
        return;
      }
      telling_ = true;
    }
    callbacks_->run([self = this->shared_from_this()] { self->tell_all(); });
  }

 private:
  void tell_all() {
    std::unique_lock lock(mutex_);
    while (!things_.empty()) {
      auto thing = std::move(things_.front());
      things_.pop_front();
      lock.unlock();
      Callbacks::run_guarded([&] { function_(std::move(thing)); });
      lock.lock();
    }
    telling_ = false;
  }

  const std::function<void(Thing)> function_;
  const std::shared_ptr<Callbacks> callbacks_;
  std::mutex mutex_;
  std::deque<Thing> things_;
  bool telling_ = false;
};

}  // namespace tutti
