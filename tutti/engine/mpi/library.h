#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/engine/mpi/mpi_api.h"

namespace tutti::engine::mpi {

class Pulse;

/// Which MPI a process is to use.
struct LibraryOptions {
  /// A plugin's name ("openmpi", "mpich", "intelmpi") or path; "none": no MPI. Empty: that of the process, when the
  /// program is linked to one, else that of the launcher.
  std::string wanted = {};
  /// Whose launcher started this process: a plugin's name; empty when it was none of MPI's.
  std::string launcher = {};
  /// The program's own communicator to work in, instead of a world: its bits.
  std::optional<std::uint64_t> communicator = std::nullopt;
};

/// The MPI of this process: loaded and initialized by the first that asks, unless the program has done so, and there
/// until the process ends. Any thread; MPI itself is called by one at a time.
class Library {
 public:
  /// The part of `open` that waits for nobody: finds and loads MPI. Fails when there is none, saying what to do.
  static Status prepare(const LibraryOptions& options);

  /// All ranks of MPI's world (or of the communicator) call it. Fails when there is no MPI to be had, saying what to
  /// do.
  static Result<std::shared_ptr<Library>> open(const LibraryOptions& options, Deadline deadline);

  Api& api() const { return *api_; }

  /// Does something with MPI while nobody else does; it must not wait for other ranks. Gives what it gives: MPI's error
  /// code, 0 for none. Does nothing, and gives kUnusable, when MPI cannot be used any more.
  template <class Function>
  int call(Function&& function) {
    std::unique_lock held(mutex_, std::defer_lock);
    while (!held.try_lock()) {
      if (stuck_) {
        return kUnusable;
      }
      std::this_thread::yield();
    }
    calls_.fetch_add(1, std::memory_order_relaxed);
    return ended_ || writes_on_ || (!ours_ && started_ && api_->is_finalized()) ? kUnusable : function();
  }
  static constexpr int kUnusable = -1;

  /// How many of these there were.
  std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  /// Has MPI move what it can, unless somebody calls it now, or the program may: where that initialized MPI for one
  /// thread at a time, only while an operation is under way.
  void nudge();
  /// The thread that does so; one for all that hold it.
  std::shared_ptr<Pulse> pulse();
  /// An operation is under way, and the program calls nothing of MPI, for as long as it lives.
  class UnderWay {
   public:
    explicit UnderWay(Library& library) : library_(library) { ++library_.under_way_; }
    ~UnderWay();
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    Library& library_;
  };

  /// Where groups are made from: a copy of the world, or of the program's communicator.
  Communicator base() const { return base_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  int highest_tag() const { return highest_tag_; }
  /// What tells this world from others; the same on all of its ranks.
  const std::string& job() const { return job_; }
  /// "Open MPI v5.0.11"
  const std::string& version() const { return version_; }
  /// Whether the program initialized it in a way that promises less than that any one thread at a time may call it.
  bool is_shaky() const { return shaky_; }

  /// Something collective that MPI offers no deadline for, on a thread of its own. When it does not come back in time,
  /// MPI is not to be called any more in this process; what the function refers to has to live as long.
  Status block(const std::string& what, Deadline deadline, std::function<int()> function);

  /// Ends what is pending and not wanted any more. Where something may still write into memory that others will get,
  /// MPI is not called any more in this process.
  void drop(Requests& requests);

  /// Why it cannot be used any more: nothing while it can.
  std::optional<Error> unusable() const;
  /// A peer is gone: ending MPI in an orderly way would wait for it.
  void expect_no_end() { orderly_ = false; }

  Error error(const std::string& what, int code) const;

 private:
  explicit Library(Api& api) : api_(&api) {}
  static Result<Api*> load(const LibraryOptions& options);
  Status start(const LibraryOptions& options, Deadline deadline);
  int make_base(std::optional<std::uint64_t> program);
  static void end_at_exit();
  void end();

  Api* const api_;
  std::mutex mutex_;
  Communicator base_{};
  int rank_ = 0;
  int size_ = 1;
  int highest_tag_ = 32767;
  std::optional<std::uint64_t> program_;  // its communicator
  bool started_ = false;
  std::string job_;
  std::string version_;
  bool ours_ = false;  // we initialized it, and end it
  bool shaky_ = false;
  bool shared_ = false;  // the program may call it at the same time
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<int> under_way_{0};
  std::mutex pulse_mutex_;
  std::weak_ptr<Pulse> pulse_;
  std::atomic<bool> stuck_{false};
  std::atomic<bool> ended_{false};
  std::atomic<bool> writes_on_{false};
  std::atomic<bool> orderly_{true};
};

}  // namespace tutti::engine::mpi
