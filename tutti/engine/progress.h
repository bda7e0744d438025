#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "tutti/engine/engine.h"

namespace tutti::engine {

/// Runs a group's collectives in the order in which they were submitted: on a thread of its own, while the caller goes
/// on computing, or on the caller's thread, when that waits for the result and nothing is under way. Owns the group's
/// engine.
class Progress {
 public:
  /// Several calls that make one operation; gets the engine, and no other call comes in between.
  using Task = std::function<Status(Engine&)>;

  explicit Progress(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  ~Progress() { close(); }

  /// The engine; not after `close`.
  Engine& engine() { return *engine_; }

  /// Ends what is still queued or running with Code::aborted, then leaves the group. Nothing may be submitted any more;
  /// what is run fails. Not from a thread that runs callbacks; twice is as good as once.
  void close();

  /// The first half of it, on any thread: ends what is under way, and lets nothing begin any more.
  void stop();

  /// Ends what is queued or running, on every rank, with Code::aborted; nothing when nothing is. Any thread.
  void end_pending();

  /// Breaks the group with this error: what is under way and what comes later ends with it, on every rank. Any thread;
  /// nothing after `close`.
  void abort(const Error& why);

  /// Whether the calling thread is one that runs this group's callbacks.
  bool on_own_thread() const;

  /// Any thread; does not block. `done` is called by the progress thread, after the call's blocks were last touched.
  void submit(Call call, Deadline deadline, Done done);
  void submit(Task task, Done done);

  /// Blocks until it is done: on this thread when nothing is under way, without asking for memory; else in its turn.
  /// Any thread.
  Status run(const Call& call, Deadline deadline);
  Status run(const Task& task);

  /// How many of these have begun, but for those that could not be. All ranks that start things in the same order count
  /// alike.
  std::uint64_t runs() const {
    return runs_at_once_.load(std::memory_order_relaxed) + runs_in_turn_.load(std::memory_order_relaxed);
  }

  /// Blocks until everything that was submitted so far is over.
  void wait_idle();

 private:
  struct Item {
    Task task;
    Done done;
  };

  // Of gate_. Whoever finds it 0 may make it kBusy and run the engine, and needs nothing else. While kWatched is set,
  // it changes under the mutex alone, and who waits for a change is told.
  static constexpr unsigned kBusy = 1;     // somebody runs the engine
  static constexpr unsigned kWatched = 2;  // something is queued or taken from there, somebody waits, or it is closing

  template <class Run>
  Status run_here_or_queue(Run&& run);
  template <class Run>
  Status run_in_turn(Run&& run);
  template <class Run>
  Status guarded(Run&& run);
  Status break_group(const char* why);
  bool busy() const { return (gate_ & kBusy) != 0; }
  void watch() { gate_ |= kWatched; }
  void stop_watching();
  void set_busy(bool busy);
  void process_front(std::unique_lock<std::mutex>& lock);
  void loop();

  std::unique_ptr<Engine> engine_;
  std::atomic<unsigned> gate_{0};
  std::atomic<std::uint64_t> runs_at_once_{0};  // written by who made the gate busy
  std::atomic<std::uint64_t> runs_in_turn_{0};  // written under the mutex
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queue_;
  bool closing_ = false;
  int unfinished_ = 0;  // queued, running, or telling their end
  int watchers_ = 0;    // wait for something else
  std::once_flag closed_;
  std::jthread thread_;  // started by the first that does not wait
};

}  // namespace tutti::engine
