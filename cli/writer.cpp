#include "cli/writer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>

namespace tutti::cli {
namespace {

/// Writes all of it; 0, or the errno that stopped it.
int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {  // somebody made the terminal non-blocking for all who share it
      pollfd writable{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

/// Whether standard output and standard error are different files, as far as one can tell.
bool errors_are_apart() {
  struct stat out {};
  struct stat err {};
  return ::fstat(STDOUT_FILENO, &out) == 0 && ::fstat(STDERR_FILENO, &err) == 0 &&
         (out.st_dev != err.st_dev || out.st_ino != err.st_ino);
}

}  // namespace

Result<std::unique_ptr<Writer>> Writer::make() {
  FileDescriptor wakeup(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wakeup.valid()) {
    return system_error("cannot make an event descriptor", errno);
  }
  return std::unique_ptr<Writer>(new Writer(std::move(wakeup), errors_are_apart()));
}

Writer::Writer(FileDescriptor wakeup, bool errors_apart) : wakeup_(std::move(wakeup)), errors_apart_(errors_apart) {
  for (std::size_t i = 0; i < (errors_apart ? 2U : 1U); ++i) {
    threads_[i] = std::jthread([this, i](const std::stop_token& stop) { work(stop, lanes_[i]); });
  }
}

Writer::~Writer() = default;

Writer::Lane& Writer::lane_of(int fd) { return lanes_[fd == STDERR_FILENO && errors_apart_ ? 1 : 0]; }

void Writer::push(int fd, std::string bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes.empty() || std::find(broken_.begin(), broken_.end(), fd) != broken_.end()) {
    return;
  }
  Lane& lane = lane_of(fd);
  lane.bytes += bytes.size();
  was_full_ = was_full_ || bytes_left() > kMostBytes;
  lane.queue.push_back({fd, std::move(bytes)});
  changed_.notify_all();
}

bool Writer::full() const {
  const std::lock_guard lock(mutex_);
  return bytes_left() > kMostBytes;
}

bool Writer::idle() const {
  const std::lock_guard lock(mutex_);
  return bytes_left() == 0;
}

std::uint64_t Writer::pieces() const {
  const std::lock_guard lock(mutex_);
  return pieces_;
}

std::vector<Writer::Broken> Writer::acknowledge() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(wakeup_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

bool Writer::flush(Deadline deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, std::min(deadline.at(), Deadline::Clock::now() + std::chrono::hours(24)),
                             [this] { return bytes_left() == 0; });
}

bool Writer::flush_errors(Deadline deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, std::min(deadline.at(), Deadline::Clock::now() + std::chrono::hours(24)),
                             [this] { return lane_of(STDERR_FILENO).bytes == 0; });
}

void Writer::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wakeup_.get(), &one, sizeof one);
}

void Writer::work(const std::stop_token& stop, Lane& lane) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&lane] { return !lane.queue.empty(); })) {
    const Item item = std::move(lane.queue.front());
    lane.queue.pop_front();
    const bool skip = std::find(broken_.begin(), broken_.end(), item.fd) != broken_.end();
    lock.unlock();
    const int error = skip ? 0 : write_all(item.fd, item.bytes);
    lock.lock();
    lane.bytes -= item.bytes.size();
    ++pieces_;
    const bool room_again = was_full_ && bytes_left() <= kMostBytes / 2;
    if (error != 0) {
      broken_.push_back(item.fd);
      news_.push_back({item.fd, error});
    }
    if (room_again || error != 0) {
      was_full_ = was_full_ && !room_again;
      wake();
    }
    changed_.notify_all();
  }
}

}  // namespace tutti::cli
