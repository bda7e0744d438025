#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "tutti/engine/engine.h"
#include "tutti/engine/mpi/mpi_links.h"

namespace tutti::engine::mpi {

/// What errors call a message by.
struct MessageTitle {
  bool sends = false;
  Rank peer{0};
  std::uint64_t tag = 0;
  std::size_t bytes = 0;

  std::string text() const;
};

/// Messages between two ranks of a group, by MPI: it matches them as an engine must. A thread of its own, started by
/// the first message, moves all of them forward at once.
class Post {
 public:
  /// `broke` is told of what breaks the group, by the thread.
  Post(const Wires& wires, std::function<void(const Error&)> broke) : wires_(wires), broke_(std::move(broke)) {}
  ~Post() { stop(); }

  /// Ends what is under way. Nothing may be submitted any more.
  void stop();

  /// Any thread; does not block.
  void send(Rank to, std::uint64_t tag, ConstBlock bytes, Deadline deadline, Done done);
  void receive(Rank from, std::uint64_t tag, Block bytes, Deadline deadline, Received received);

  bool on_own_thread() const { return std::this_thread::get_id() == own_.load(); }

 private:
  struct Message {
    bool sends = false;
    Rank peer{0};
    int tag = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    Deadline deadline = Deadline::never();
    Done done = nullptr;
    Received received = nullptr;
    std::uint32_t number = 0;
  };

  void submit(Message message, std::uint64_t tag);
  void run(const std::stop_token& stop);
  void begin(Requests& requests, Message message);
  void look(Requests& requests);
  void end_overdue(Requests& requests);
  void end_all(Requests& requests, const Error& error);
  static void finish(const Message& message, const Result<Rank>& result);
  static std::string text(const Message& message);

  const Wires& wires_;
  const std::function<void(const Error&)> broke_;
  std::atomic<std::thread::id> own_{};
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Message> new_;
  // Below: the thread's alone.
  std::deque<Message> pending_;
  std::vector<Over> ends_;
  std::uint32_t numbers_ = 0;
  std::jthread thread_;
};

}  // namespace tutti::engine::mpi
