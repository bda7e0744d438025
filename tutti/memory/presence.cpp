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

  ~RobustList() {
    ::syscall(SYS_set_robust_list, nullptr, sizeof head);
  }  // the kernel must not walk a stack that is gone

  Status add(LifeWord& life) {
    entry.next = &head.list;
    head.list.next = &entry;
    head.futex_offset = reinterpret_cast<char*>(&life.word) - reinterpret_cast<char*>(&entry);
    head.list_op_pending = nullptr;
    if (::syscall(SYS_set_robust_list, &head, sizeof head) != 0) {
      return system_error("cannot register a mark of life with the kernel", errno);
    }
    return {};
  }
  void clear() { head.list.next = &head.list; }
};

/// The thread that holds a mark, and what it waits for.
class Holder {
 public:
  explicit Holder(LifeWord& life) : life_(life) {}

  Status start() {
    std::promise<Status> started;
    auto result = started.get_future();
    thread_ = std::thread([this, &started] { hold_until_stopped(started); });
    return result.get();
  }

  ~Holder() {
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
    if (auto added = list.add(life_); !added) {
      started.set_value(added);
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
    life_.pid.store(::getpid());
    started.set_value({});
    {
      std::unique_lock lock(mutex_);
      stopped_.wait(lock, [this] { return stop_; });
    }
    list.clear();
    life_.word.store(kLeft);
  }

  LifeWord& life_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;
};

class ThreadedLifeMark final : public LifeMark {
 public:
  explicit ThreadedLifeMark(std::unique_ptr<Holder> holder) : holder_(std::move(holder)) {}
  ~ThreadedLifeMark() override {
    if (::getpid() != process_) {
      // A forked child has no such thread, and its parent is the rank. What the thread used cannot even be destroyed:
      // a condition variable would wait for it.
      (void)holder_.release();  // NOLINT(bugprone-unused-return-value)
    }
  }

 private:
  const pid_t process_ = ::getpid();
  std::unique_ptr<Holder> holder_;
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
  auto holder = std::make_unique<Holder>(life);
  if (const auto started = holder->start(); !started) {
    return started.error();
  }
  return std::unique_ptr<LifeMark>(std::make_unique<ThreadedLifeMark>(std::move(holder)));
}

void mark_here(LifeWord& life) {
  life.pid.store(::getpid());
  life.word.store(kHereWithoutOwner);
}

void mark_left(LifeWord& life) { life.word.store(kLeft); }

}  // namespace tutti::memory
