#include "cli/event_loop.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>

namespace tutti::cli {

Result<EventLoop> EventLoop::make() {
  FileDescriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) {
    return system_error("cannot make an event loop", errno);
  }
  return EventLoop(std::move(epoll));
}

Status EventLoop::watch(int fd, std::uint32_t events, Handler handler) {
  const std::uint64_t number = next_++;
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return system_error("cannot watch a descriptor", errno);
  }
  watches_[number] = std::make_shared<Watch>(Watch{fd, std::move(handler)});
  number_of_[fd] = number;
  return {};
}

void EventLoop::forget(int fd) {
  const auto found = number_of_.find(fd);
  if (found == number_of_.end()) {
    return;
  }
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watches_.erase(found->second);
  number_of_.erase(found);
}

void EventLoop::run_once(Deadline deadline) {
  std::array<epoll_event, 64> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), deadline.poll_timeout_ms());
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const auto found = watches_.find(event.data.u64);
    if (found != watches_.end()) {
      const auto watch = found->second;  // a handler may forget itself
      watch->handler(event.events);
    }
  }
}

}  // namespace tutti::cli
