#include "tutti/engine/progress.h"

#include <exception>
#include <utility>

#include <fmt/format.h>

namespace tutti::engine {

Progress::Progress(std::unique_ptr<Engine> engine) : engine_(std::move(engine)), thread_([this] { run(); }) {}

void Progress::close() {
  std::call_once(closed_, [this] {
    bool pending = false;
    {
      const std::scoped_lock lock(mutex_);
      closing_ = true;
      pending = busy_ || !queue_.empty();
    }
    if (pending) {
      engine_->abort({Code::aborted,
                      fmt::format("rank {} closed the group with operations still under way", to_int(engine_->rank())),
                      engine_->rank()});
    }
    something_.notify_one();
    thread_.join();
    engine_.reset();
  });
}

bool Progress::on_own_thread() const {
  return std::this_thread::get_id() == thread_.get_id() || (engine_ && engine_->on_own_thread());
}

void Progress::submit(Call call, Deadline deadline, Done done) {
  {
    const std::scoped_lock lock(mutex_);
    queue_.push_back({std::move(call), deadline, std::move(done)});
  }
  something_.notify_one();
}

/// No exception may end the process: one in the middle of a collective leaves ranks out of step, so it breaks the
/// group.
Status Progress::run_engine(const Item& item) {
  try {
    return engine_->run(item.call, item.deadline);
  } catch (const std::exception& exception) {
    const Error error{
        Code::resource_exhausted,
        fmt::format("{} on rank {} failed: {}", to_string(item.call.op), to_int(engine_->rank()), exception.what()),
        engine_->rank()};
    engine_->abort(error);
    return error;
  }
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
    const auto status = run_engine(item);
    lock.lock();
    busy_ = false;  // who was told the end may close the group: nothing is under way any more
    lock.unlock();
    item.done(status);
    item = Item{.call = {}, .deadline = Deadline::never(), .done = {}};  // what the callback held goes before the next
    lock.lock();
  }
}

}  // namespace tutti::engine
