#include "tutti/engine/progress.h"

#include <utility>

namespace tutti::engine {

Progress::Progress(std::unique_ptr<Engine> engine) : engine_(std::move(engine)), thread_([this] { run(); }) {}

void Progress::close() {
  if (!thread_.joinable()) {
    return;
  }
  bool pending = false;
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    pending = busy_ || !queue_.empty();
  }
  if (pending) {
    engine_->abort({Code::aborted, "the group was closed with operations still under way"});
  }
  something_.notify_one();
  thread_.join();
  engine_.reset();
}

void Progress::submit(Call call, Deadline deadline, Done done) {
  {
    const std::scoped_lock lock(mutex_);
    queue_.push_back({std::move(call), deadline, std::move(done)});
  }
  something_.notify_one();
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    something_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) {
      return;
    }
    auto item = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    const auto status = engine_->run(item.call, item.deadline);
    item.done(status);
    item = Item{.call = {}, .deadline = Deadline::never(), .done = {}};  // what the callback held goes before the next
    lock.lock();
    busy_ = false;
  }
}

}  // namespace tutti::engine
