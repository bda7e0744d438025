#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "tutti/engine/engine.h"

namespace tutti::engine {

/// Runs a group's collectives in the order in which they were submitted, on a thread of its own, while the caller goes
/// on computing. Owns the group's engine.
class Progress {
 public:
  explicit Progress(std::unique_ptr<Engine> engine);

  ~Progress() { close(); }

  /// The engine; not after `close`.
  Engine& engine() { return *engine_; }

  /// Ends what is still queued or running with Code::aborted, then leaves the group. Nothing may be submitted any more.
  /// Not from a thread that runs callbacks; twice is as good as once.
  void close();

  /// Whether the calling thread is one that runs this group's callbacks.
  bool on_own_thread() const;

  /// Any thread; does not block. `done` is called by the progress thread, after the call's blocks were last touched.
  void submit(Call call, Deadline deadline, Done done);

 private:
  struct Item {
    Call call;
    Deadline deadline;
    Done done;
  };

  void run();
  Status run_engine(const Item& item);

  std::unique_ptr<Engine> engine_;
  std::mutex mutex_;
  std::condition_variable something_;
  std::deque<Item> queue_;
  bool busy_ = false;
  bool closing_ = false;
  std::once_flag closed_;
  std::jthread thread_;
};

}  // namespace tutti::engine
