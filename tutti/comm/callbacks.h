#pragma once

#include <functional>
#include <memory>

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

  /// Ends the threads when what they run is over, and waits for them, but for the calling one.
  void stop();

 private:
  struct State;

  std::shared_ptr<State> state_;  // a callback may be the last to hold what holds this
};

}  // namespace tutti
