#include "tutti/comm/callbacks.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <thread>

#include <c10/util/Exception.h>

namespace tutti {
namespace {

constexpr std::chrono::seconds kIdle{5};

}  // namespace

struct Callbacks::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  std::list<std::thread> threads;
  std::list<std::thread::id> running;  // inside of a task
  std::list<std::thread::id> ended;    // were idle for long, and are to be joined
  std::size_t idle = 0;
  bool stopping = false;

  void loop();
  void join_ended();
};

void Callbacks::State::loop() {
  std::unique_lock lock(mutex);
  for (;;) {
    ++idle;
    changed.wait_for(lock, kIdle, [this] { return !tasks.empty() || stopping; });
    --idle;
    if (tasks.empty()) {
      ended.push_back(std::this_thread::get_id());
      return;
    }
    auto task = std::move(tasks.front());
    tasks.pop_front();
    running.push_back(std::this_thread::get_id());
    lock.unlock();
    run_guarded(task);
    task = nullptr;  // what it held may go now
    lock.lock();
    running.remove(std::this_thread::get_id());
    changed.notify_all();
  }
}

void Callbacks::State::join_ended() {
  for (const auto id : ended) {
    const auto found =
        std::find_if(threads.begin(), threads.end(), [&](const auto& thread) { return thread.get_id() == id; });
    if (found != threads.end()) {
      found->join();
      threads.erase(found);
    }
  }
  ended.clear();
}

void Callbacks::run_guarded(const std::function<void()>& function) {
  try {
    function();
  } catch (const std::exception& thrown) {
    TORCH_WARN("a callback of a tutti operation threw: ", thrown.what());
  } catch (...) {
    TORCH_WARN("a callback of a tutti operation threw something that is no std::exception");
  }
}

Callbacks::Callbacks() : state_(std::make_shared<State>()) {}

void Callbacks::run(std::function<void()> task) {
  {
    const std::scoped_lock lock(state_->mutex);
    if (!state_->stopping) {
      state_->join_ended();
      state_->tasks.push_back(std::move(task));
      if (state_->tasks.size() <= state_->idle) {
        state_->changed.notify_all();
        return;
      }
      try {
        state_->threads.emplace_back([state = state_] { state->loop(); });
        return;
      } catch (...) {  // no thread is to be had, or no memory
        task = std::move(state_->tasks.back());
        state_->tasks.pop_back();
      }
    }
  }
  run_guarded(task);
}

void Callbacks::wait_idle() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] {
    return state_->tasks.empty() && std::all_of(state_->running.begin(), state_->running.end(),
                                                [](std::thread::id id) { return id == std::this_thread::get_id(); });
  });
}

void Callbacks::stop() {
  std::list<std::thread> threads;
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
    threads.swap(state_->threads);
    state_->changed.notify_all();
  }
  for (auto& thread : threads) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

}  // namespace tutti
