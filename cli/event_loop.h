#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "tutti/base/deadline.h"
#include "tutti/base/error.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::cli {

/// Calls a handler when a descriptor has something. One thread. Handlers may watch and forget any descriptor, their own
/// among them. Descriptors belong to the caller, who forgets them before closing them.
class EventLoop {
 public:
  /// `events` are epoll's: EPOLLIN, EPOLLOUT, EPOLLHUP, ...
  using Handler = std::function<void(std::uint32_t events)>;

  static Result<EventLoop> make();

  Status watch(int fd, std::uint32_t events, Handler handler);
  void forget(int fd);

  /// Waits for one round of events, or until the deadline, and calls the handlers.
  void run_once(Deadline deadline);

 private:
  struct Watch {
    int fd;
    Handler handler;
  };

  explicit EventLoop(FileDescriptor epoll) : epoll_(std::move(epoll)) {}

  FileDescriptor epoll_;
  // Events carry the watch's number, not the descriptor: one that was closed and opened again in the same round is
  // another one.
  std::map<std::uint64_t, std::shared_ptr<Watch>> watches_;
  std::map<int, std::uint64_t> number_of_;
  std::uint64_t next_ = 1;
};

}  // namespace tutti::cli
