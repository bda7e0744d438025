#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::cli {

/// Writes bytes to descriptors from threads of its own, in the order given, so that a terminal or a disk that blocks
/// holds up nobody who has to look after signals. Standard error has a lane of its own, so that it does not wait behind
/// a standard output that nobody reads; where both are the same file they share one, and lines stay whole.
/// Bounded: who pushes asks `full()` first and stops reading if it is. Any thread may push. Descriptors are borrowed.
class Writer {
 public:
  static constexpr std::size_t kMostBytes = 8 << 20;

  /// A descriptor that took no more; what is pushed for it later is dropped.
  struct Broken {
    int fd;
    int error;
  };

  static Result<std::unique_ptr<Writer>> make();

  /// Waits for the write that is under way, which may be for ever: see `flush`.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void push(int fd, std::string bytes);
  bool full() const;

  /// Readable when the queue is no longer full, or a descriptor broke. Then call `acknowledge()`.
  int wakeup() const { return wakeup_.get(); }
  std::vector<Broken> acknowledge();

  /// Whether nothing is left to write.
  bool idle() const;

  /// Waits until everything is written. False at the deadline: then the destructor would block as well, and the process
  /// has to leave by _exit().
  bool flush(Deadline deadline);
  /// The same for what was pushed for standard error alone.
  bool flush_errors(Deadline deadline);

  /// How many pieces were written so far: tells a reader that is slow from one that does not read.
  std::uint64_t pieces() const;

 private:
  struct Item {
    int fd;
    std::string bytes;
  };

  /// What is written one after the other.
  struct Lane {
    std::deque<Item> queue = {};
    std::size_t bytes = 0;  ///< in the queue and being written
  };

  Writer(FileDescriptor wakeup, bool errors_apart);
  Lane& lane_of(int fd);
  void work(const std::stop_token& stop, Lane& lane);
  std::size_t bytes_left() const { return lanes_[0].bytes + lanes_[1].bytes; }
  void wake() const;

  FileDescriptor wakeup_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  const bool errors_apart_;
  std::array<Lane, 2> lanes_ = {};  ///< the second is standard error's, if it is apart
  std::uint64_t pieces_ = 0;
  bool was_full_ = false;
  std::vector<int> broken_;
  std::vector<Broken> news_;
  std::array<std::jthread, 2> threads_;  ///< one per lane; last: the first to go
};

}  // namespace tutti::cli
