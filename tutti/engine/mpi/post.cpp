#include "tutti/engine/mpi/post.h"

#include <algorithm>

#include <fmt/format.h>

#include "tutti/engine/mpi/poll.h"
#include "tutti/engine/mpi/watch.h"

namespace tutti::engine::mpi {

void Post::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    changed_.notify_all();
    thread_.join();
  }
}

std::string MessageTitle::text() const {
  return fmt::format("{} of {} bytes {} {} (tag {})", sends ? "send" : "receive", bytes, sends ? "to" : "from",
                     peer == kAnyRank ? "any rank" : fmt::format("rank {}", to_int(peer)), tag);
}

std::string Post::text(const Message& message) {
  return MessageTitle{.sends = message.sends,
                      .peer = message.peer,
                      .tag = static_cast<std::uint64_t>(message.tag - kFirstMessageTag),
                      .bytes = message.bytes}
      .text();
}

void Post::finish(const Message& message, const Result<Rank>& result) {
  if (message.sends) {
    message.done(result ? Status() : Status(result.error()));
  } else {
    message.received(result);
  }
}

void Post::send(Rank to, std::uint64_t tag, ConstBlock bytes, Deadline deadline, Done done) {
  submit({.sends = true,
          .peer = to,
          .data = const_cast<std::byte*>(bytes.data()),  // only read
          .bytes = bytes.size(),
          .deadline = deadline,
          .done = std::move(done)},
         tag);
}

void Post::receive(Rank from, std::uint64_t tag, Block bytes, Deadline deadline, Received received) {
  submit({.peer = from,
          .data = bytes.data(),
          .bytes = bytes.size(),
          .deadline = deadline,
          .received = std::move(received)},
         tag);
}

void Post::submit(Message message, std::uint64_t tag) {
  const auto highest = static_cast<std::uint64_t>(wires_.library->highest_tag() - kFirstMessageTag);
  if (tag > highest) {
    finish(message, Error{Code::invalid_argument, fmt::format("tag {} is too large: {} counts to {}", tag,
                                                              wires_.library->version(), highest)});
    return;
  }
  if (message.peer == kAnyRank && message.bytes > Requests::kLongest) {
    // It would come in parts, and parts of several ranks could meet.
    finish(message, Error{Code::unsupported, "a receive from any rank takes at most 1 GiB: name the rank"});
    return;
  }
  message.tag = static_cast<int>(tag) + kFirstMessageTag;
  const std::scoped_lock lock(mutex_);
  new_.push_back(std::move(message));
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  changed_.notify_all();
}

void Post::begin(Requests& requests, Message message) {
  message.number = ++numbers_;
  const int error = wires_.library->call([&] {
    if (message.sends) {
      return requests.send(wires_.communicator, to_int(message.peer), message.tag, message.data, message.bytes,
                           message.number);
    }
    const int from = message.peer == kAnyRank ? Requests::kAnySource : to_int(message.peer);
    return requests.receive(wires_.communicator, from, message.tag, message.data, message.bytes, message.number);
  });
  if (error != 0) {
    const auto why = wires_.library->error(text(message), error);
    finish(message, why);
    broke_(why);
    return;
  }
  pending_.push_back(std::move(message));
}

void Post::look(Requests& requests) {
  ends_.clear();
  const int error = wires_.library->call([&] { return requests.poll(ends_); });
  if (error != 0) {
    broke_(wires_.library->error("a message", error));
  }
  for (const auto& end : ends_) {
    const auto found =
        std::find_if(pending_.begin(), pending_.end(), [&](const Message& each) { return each.number == end.number; });
    if (found == pending_.end()) {
      continue;
    }
    const auto message = std::move(*found);
    pending_.erase(found);
    const bool short_of = !message.sends && end.bytes != message.bytes;
    if (end.error == 0 && !short_of) {
      finish(message, message.sends ? message.peer : Rank{end.from});
      continue;
    }
    const Error why = end.error != 0 ? wires_.library->error(text(message), end.error)
                                     : Error{Code::mismatch, fmt::format("{}: the message from rank {} has {} bytes",
                                                                         text(message), end.from, end.bytes)};
    broke_(why);  // its bytes are gone
    finish(message, why);
  }
}

void Post::end_overdue(Requests& requests) {
  for (const auto& message : pending_) {
    if (message.deadline.expired()) {
      const Error why{Code::timed_out, fmt::format("{}: the deadline passed", text(message)),
                      message.peer == kAnyRank ? std::nullopt : std::optional(message.peer)};
      broke_(why);
      end_all(requests, wires_.hub.broken().value_or(why));
      return;
    }
  }
}

void Post::end_all(Requests& requests, const Error& error) {
  wires_.library->drop(requests);
  std::deque<Message> ended;
  ended.swap(pending_);
  for (const auto& message : ended) {
    finish(message, in_operation(error, text(message)));
  }
}

void Post::run(const std::stop_token& stop) {
  own_ = std::this_thread::get_id();
  const auto requests = wires_.library->api().make_requests();
  Pause pause;
  for (unsigned looks = 0; !stop.stop_requested(); ++looks) {
    std::deque<Message> taken;
    {
      std::unique_lock lock(mutex_);
      if (pending_.empty()) {
        changed_.wait(lock, stop, [&] { return !new_.empty(); });
      }
      taken.swap(new_);
    }
    for (auto& message : taken) {
      begin(*requests, std::move(message));
    }
    const auto before = pending_.size();
    look(*requests);
    const bool moved = !taken.empty() || pending_.size() != before;
    if (moved) {
      pause = Pause();
    }
    // Now and then, however busy it is.
    if (!pending_.empty() && ((!moved && pause.next()) || looks % 256 == 0)) {
      if (auto broken = wires_.hub.broken()) {
        end_all(*requests, *broken);
      } else {
        end_overdue(*requests);
      }
    }
  }
  {
    const std::scoped_lock lock(mutex_);
    for (auto& message : new_) {
      pending_.push_back(std::move(message));
    }
    new_.clear();
  }
  end_all(*requests, {Code::aborted, "the group was closed"});
}

}  // namespace tutti::engine::mpi
