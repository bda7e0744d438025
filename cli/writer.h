#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::cli {

/// Writes bytes to descriptors from a thread of its own, in the order given, so that a terminal or a disk that blocks
/// holds up nobody who has to look after signals. Bounded: who pushes asks `full()` first and stops reading if it is.
/// Any thread may push. Descriptors are borrowed.
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

 private:
  struct Item {
    int fd;
    std::string bytes;
  };

  explicit Writer(FileDescriptor wakeup);
  void work(const std::stop_token& stop);
  void wake() const;

  FileDescriptor wakeup_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Item> queue_;
  std::size_t bytes_ = 0;  ///< in the queue and being written
  bool was_full_ = false;
  std::vector<int> broken_;
  std::vector<Broken> news_;
  std::jthread thread_;  ///< last: the first to go
};

}  // namespace tutti::cli
