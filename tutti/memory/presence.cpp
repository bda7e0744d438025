#include "tutti/memory/presence.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <future>
#include <mutex>
#include <thread>

#include <fmt/format.h>

namespace tutti::memory {
namespace {

// Beside a thread's id: no thread has this one, which is all of the id's bits.
constexpr std::uint32_t kLeft = FUTEX_TID_MASK;
constexpr std::uint32_t kHereWithoutOwner = FUTEX_TID_MASK - 1;

/// The list that the kernel walks when the thread that registered it ends. It finds the word by its distance from the
/// entry, so each life word needs an entry of its own and a list of its own.
struct RobustList {
  robust_list_head head{};
  robust_list entry{};

  void add(LifeWord& life) {
    entry.next = &head.list;
    head.list.next = &entry;
    head.futex_offset = reinterpret_cast<char*>(&life.word) - reinterpret_cast<char*>(&entry);
    head.list_op_pending = nullptr;
  }
  void clear() { head.list.next = &head.list; }
};

class ThreadedLifeMark final : public LifeMark {
 public:
  explicit ThreadedLifeMark(LifeWord& life) : life_(life), process_(::getpid()) {}

  Status start() {
    std::promise<Status> started;
    auto result = started.get_future();
    thread_ = std::thread([this, &started] { hold_until_stopped(started); });
    auto status = result.get();
    if (!status) {
      thread_.join();
    }
    return status;
  }

  ~ThreadedLifeMark() override {
    if (!thread_.joinable()) {
      return;
    }
    if (::getpid() != process_) {  // a forked child has no such thread, and the rank is its parent
      thread_.detach();
      return;
    }
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    stopped_.notify_one();
    thread_.join();
  }

 private:
  void hold_until_stopped(std::promise<Status>& started) {
    RobustList list;
    list.add(life_);
    if (::syscall(SYS_set_robust_list, &list.head, sizeof list.head) != 0) {
      started.set_value(system_error("cannot register a mark of life with the kernel", errno));
      return;
    }
    std::uint32_t nobody = 0;
    const auto me = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    if (!life_.word.compare_exchange_strong(nobody, me)) {
      list.clear();
      started.set_value(
          Error{Code::refused, fmt::format("this rank's place is taken by process {}", life_.pid.load())});
      return;
    }
    life_.pid.store(process_);
    started.set_value({});
    {
      std::unique_lock lock(mutex_);
      stopped_.wait(lock, [this] { return stop_; });
    }
    list.clear();
    life_.word.store(kLeft);
  }

  LifeWord& life_;
  const pid_t process_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace

Presence presence(const LifeWord& life) {
  const auto word = life.word.load(std::memory_order_acquire);
  if (word == 0) {
    return Presence::absent;
  }
  if ((word & FUTEX_OWNER_DIED) != 0) {
    return Presence::died;
  }
  return (word & FUTEX_TID_MASK) == kLeft ? Presence::left : Presence::here;
}

Result<std::unique_ptr<LifeMark>> LifeMark::hold(LifeWord& life) {
  auto mark = std::make_unique<ThreadedLifeMark>(life);
  if (const auto started = mark->start(); !started) {
    return started.error();
  }
  return std::unique_ptr<LifeMark>(std::move(mark));
}

void mark_here(LifeWord& life) {
  life.pid.store(::getpid());
  life.word.store(kHereWithoutOwner);
}

void mark_left(LifeWord& life) { life.word.store(kLeft); }

}  // namespace tutti::memory
