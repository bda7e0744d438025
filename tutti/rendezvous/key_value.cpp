#include "tutti/rendezvous/key_value.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "tutti/rendezvous/request_shape.h"

namespace tutti::rendezvous {
namespace {

constexpr std::size_t kEntryOverhead = 64;  // what a key costs beside its bytes, roughly
constexpr std::size_t kMostNamed = 8;       // keys that a sentence names

Error invalid(std::string sentence) { return {.code = Code::invalid_argument, .message = std::move(sentence)}; }

std::optional<std::int64_t> number_in(const std::string& text) {
  std::int64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  return failure == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace

void KeyValue::apply(Ticket ticket, const Request& request, std::vector<Answer>& answers) {
  if (auto shape = check_shape(request); !shape) {
    answers.push_back({ticket, shape.error()});
    return;
  }
  // Its own answer goes first: who wakes others should not read of it after them.
  const std::size_t at = answers.size();
  auto done = perform(ticket, request, answers);
  if (!done) {
    answers.insert(answers.begin() + static_cast<std::ptrdiff_t>(at), {ticket, done.error()});
  } else if (done.value()) {
    answers.insert(answers.begin() + static_cast<std::ptrdiff_t>(at), {ticket, std::move(*done.value())});
  }
}

Result<std::optional<Reply>> KeyValue::perform(Ticket ticket, const Request& request, std::vector<Answer>& answers) {
  const auto finish = [](const auto& status, Reply reply) -> Result<std::optional<Reply>> {
    if (!status) {
      return status.error();
    }
    return std::optional(std::move(reply));
  };
  const auto as_reply = [](Result<Reply> result) -> Result<std::optional<Reply>> {
    if (!result) {
      return result.error();
    }
    return std::optional(std::move(result).value());
  };
  const auto number = [](std::int64_t value) { return std::optional(Reply{.values = {}, .number = value}); };
  switch (request.op) {
    case Op::set: return finish(put(request, answers), {});
    case Op::get:
    case Op::wait: return first_missing(request, 0) ? park(ticket, request) : as_reply(finish_wait(request));
    case Op::add: return as_reply(add(request, answers));
    case Op::compare_set: return as_reply(compare_set(request, answers));
    case Op::erase: return number(erase(request.keys[0]) ? 1 : 0);
    case Op::check: return number(first_missing(request, 0) ? 0 : 1);
    case Op::count: return number(static_cast<std::int64_t>(values_.size() + queues_.size()));
    case Op::list: return std::optional(list());
    case Op::append: {
      const auto found = values_.find(request.keys[0]);
      const std::string before = found == values_.end() ? std::string() : found->second;
      return finish(put_one(request.keys[0], before + request.values[0], answers), {});
    }
    case Op::push: return finish(push(request, answers), {});
    case Op::pop: {
      auto popped = pop(request);
      return popped && !popped.value() ? park(ticket, request) : popped;
    }
    case Op::queue_length: {
      const auto queue = queues_.find(request.keys[0]);
      return number(queue == queues_.end() ? 0 : static_cast<std::int64_t>(queue->second.size()));
    }
    case Op::barrier: return barrier(ticket, request, answers);
  }
  return invalid("no such store operation");
}

Status KeyValue::put(const Request& request, std::vector<Answer>& answers) {
  std::size_t more = 0;
  for (std::size_t i = 0; i < request.keys.size(); ++i) {
    more += kEntryOverhead + request.keys[i].size() + request.values[i].size();
  }
  if (auto room = room_for(more); !room) {
    return room;  // all or none
  }
  for (std::size_t i = 0; i < request.keys.size(); ++i) {
    if (auto status = put_one(request.keys[i], request.values[i], answers); !status) {
      return status;
    }
  }
  return {};
}

Status KeyValue::put_one(const std::string& key, std::string value, std::vector<Answer>& answers) {
  if (value.size() > kMaxValueBytes) {
    return invalid(fmt::format("the value of {} would have {} bytes; at most {} are allowed", shown(key), value.size(),
                               kMaxValueBytes));
  }
  const auto found = values_.find(key);
  const std::size_t before = found == values_.end() ? 0 : kEntryOverhead + key.size() + found->second.size();
  const std::size_t after = kEntryOverhead + key.size() + value.size();
  if (auto room = room_for(after > before ? after - before : 0); !room) {
    return room;
  }
  bytes_ += after - before;
  values_.insert_or_assign(key, std::move(value));
  wake(key, answers);
  return {};
}

Result<Reply> KeyValue::add(const Request& request, std::vector<Answer>& answers) {
  const auto& key = request.keys[0];
  std::int64_t sum = request.number;
  if (const auto found = values_.find(key); found != values_.end()) {
    const auto before = number_in(found->second);
    if (!before) {
      return invalid(fmt::format("cannot add to {}: its value is not a number", shown(key)));
    }
    if (__builtin_add_overflow(*before, request.number, &sum)) {
      return invalid(fmt::format("cannot add {} to {}: {} is there, and the sum does not fit 64 bits", request.number,
                                 shown(key), *before));
    }
  }
  if (auto status = put_one(key, std::to_string(sum), answers); !status) {
    return status.error();
  }
  return Reply{.values = {}, .number = sum};
}

Result<Reply> KeyValue::compare_set(const Request& request, std::vector<Answer>& answers) {
  const auto& expected = request.values[0];
  const auto& desired = request.values[1];
  const auto found = values_.find(request.keys[0]);
  const bool swap = found == values_.end() ? expected.empty() : found->second == expected;
  if (!swap) {
    return Reply{.values = {found == values_.end() ? expected : found->second}};
  }
  if (auto status = put_one(request.keys[0], desired, answers); !status) {
    return status.error();
  }
  return Reply{.values = {desired}};
}

Status KeyValue::push(const Request& request, std::vector<Answer>& answers) {
  const auto& key = request.keys[0];
  const std::size_t size = kEntryOverhead + key.size() + request.values[0].size();
  if (auto room = room_for(size); !room) {
    return room;
  }
  bytes_ += size;
  queues_[key].push_back(request.values[0]);
  wake(key, answers);
  return {};
}

Result<std::optional<Reply>> KeyValue::pop(const Request& request) {
  if (auto value = take_front(request.keys[0])) {
    return std::optional(Reply{.values = {std::move(*value)}});
  }
  if (request.number == 0) {
    return Error{.code = Code::not_found, .message = fmt::format("the queue {} is empty", shown(request.keys[0]))};
  }
  return std::optional<Reply>();
}

Result<std::optional<Reply>> KeyValue::barrier(Ticket ticket, const Request& request, std::vector<Answer>& answers) {
  const auto& key = request.keys[0];
  if (request.number < 1) {
    return invalid(fmt::format("barrier {} of {} participants: at least 1 is needed", shown(key), request.number));
  }
  auto& barrier = barriers_[key];
  if (barrier.arrived.empty()) {
    barrier.participants = request.number;
  } else if (barrier.participants != request.number) {
    return Error{.code = Code::mismatch,
                 .message = fmt::format("barrier {} was entered as one of {} participants and now as one of {}",
                                        shown(key), barrier.participants, request.number)};
  }
  if (static_cast<std::int64_t>(barrier.arrived.size()) + 1 < request.number) {
    auto parked = park(ticket, request);
    if (parked) {
      barrier.arrived.push_back(ticket);
    } else if (barrier.arrived.empty()) {
      barriers_.erase(key);
    }
    return parked;
  }
  for (const auto other : barrier.arrived) {
    forget(other);
    answers.push_back({other, Reply{}});
  }
  barriers_.erase(key);
  return std::optional(Reply{});
}

Reply KeyValue::list() const {
  Reply reply;
  reply.values.reserve(values_.size() + queues_.size());
  for (const auto& [key, value] : values_) {
    reply.values.push_back(key);
  }
  for (const auto& [key, queue] : queues_) {
    reply.values.push_back(key);
  }
  return reply;
}

bool KeyValue::present(const std::string& key) const { return values_.contains(key) || queues_.contains(key); }

bool KeyValue::erase(const std::string& key) {
  bool was_there = false;
  if (const auto found = values_.find(key); found != values_.end()) {
    bytes_ -= kEntryOverhead + key.size() + found->second.size();
    values_.erase(found);
    was_there = true;
  }
  while (take_front(key)) {
    was_there = true;
  }
  return was_there;
}

std::optional<std::size_t> KeyValue::first_missing(const Request& request, std::size_t from) const {
  const std::size_t count = request.keys.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = (from + i) % count;
    // A get needs values; for the others something in a queue is there, too.
    if (!(request.op == Op::get ? values_.contains(request.keys[at]) : present(request.keys[at]))) {
      return at;
    }
  }
  return std::nullopt;
}

Result<Reply> KeyValue::values_of(const Request& request) const {
  std::size_t total = 0;
  for (const auto& key : request.keys) {
    total += values_.at(key).size();
  }
  if (total > kMaxValueBytes) {  // before copying: the same key may be asked for a million times
    return invalid(fmt::format("the values of {} keys have {} bytes together; at most {} fit one call",
                               request.keys.size(), total, kMaxValueBytes));
  }
  Reply reply;
  reply.values.reserve(request.keys.size());
  for (const auto& key : request.keys) {
    reply.values.push_back(values_.at(key));
  }
  return reply;
}

Result<Reply> KeyValue::finish_wait(const Request& request) const {
  return request.op == Op::get ? values_of(request) : Reply{};
}

Result<std::optional<Reply>> KeyValue::park(Ticket ticket, const Request& request) {
  std::size_t size = kEntryOverhead;
  for (const auto& key : request.keys) {
    size += kEntryOverhead + key.size();
  }
  if (auto room = room_for(size); !room) {
    return room.error();
  }
  bytes_ += size;
  const std::size_t at = request.op == Op::barrier ? 0 : first_missing(request, 0).value_or(0);
  if (request.op != Op::barrier) {
    waiting_for_[request.keys[at]].push_back(ticket);
  }
  waiters_.insert_or_assign(ticket, Waiter{.request = request, .bytes = size, .next = at});
  return std::optional<Reply>();
}

void KeyValue::forget(Ticket ticket) {
  const auto found = waiters_.find(ticket);
  bytes_ -= found->second.bytes;
  waiters_.erase(found);
}

void KeyValue::wake(const std::string& key, std::vector<Answer>& answers) {
  auto node = waiting_for_.extract(key);
  if (node.empty()) {
    return;
  }
  std::vector<Ticket> still_here;
  for (const auto ticket : node.mapped()) {
    auto& waiter = waiters_.at(ticket);
    if (waiter.request.op == Op::pop) {
      if (auto value = take_front(key)) {
        answers.push_back({ticket, Reply{.values = {std::move(*value)}}});
        forget(ticket);
      } else {
        still_here.push_back(ticket);
      }
      continue;
    }
    const auto missing = first_missing(waiter.request, waiter.next);
    if (!missing) {
      answers.push_back({ticket, finish_wait(waiter.request)});
      forget(ticket);
    } else if (waiter.request.keys[*missing] == key) {
      still_here.push_back(ticket);
    } else {
      waiter.next = *missing;
      waiting_for_[waiter.request.keys[*missing]].push_back(ticket);
    }
  }
  if (!still_here.empty()) {
    waiting_for_[key] = std::move(still_here);
  }
}

std::optional<std::string> KeyValue::take_front(const std::string& key) {
  const auto queue = queues_.find(key);
  if (queue == queues_.end()) {
    return std::nullopt;
  }
  std::string value = std::move(queue->second.front());
  queue->second.pop_front();
  bytes_ -= kEntryOverhead + key.size() + value.size();
  if (queue->second.empty()) {
    queues_.erase(queue);
  }
  return value;
}

Status KeyValue::room_for(std::size_t more) const {
  if (more > max_bytes_ - std::min(bytes_, max_bytes_)) {
    return Error{.code = Code::resource_exhausted,
                 .message = fmt::format("the store holds {} bytes and takes at most {}; {} more do not fit", bytes_,
                                        max_bytes_, more)};
  }
  return {};
}

std::string KeyValue::describe_missing(const Waiter& waiter) const {
  const auto& request = waiter.request;
  if (request.op == Op::barrier) {
    const auto barrier = barriers_.find(request.keys[0]);
    const std::size_t came = barrier == barriers_.end() ? 0 : barrier->second.arrived.size();
    return fmt::format("{} of {} came to barrier {}", came, request.number, shown(request.keys[0]));
  }
  if (request.op == Op::pop) {
    return fmt::format("nobody pushed onto the queue {}", shown(request.keys[0]));
  }
  std::string names;
  std::size_t missing = 0;
  for (const auto& key : request.keys) {
    if (values_.contains(key)) {
      continue;
    }
    if (++missing <= kMostNamed) {
      names += (missing > 1 ? ", " : "") + shown(key);
    }
  }
  if (missing > kMostNamed) {
    names += fmt::format(" and {} more", missing - kMostNamed);
  }
  return fmt::format("nobody set {} of {} keys: {}", missing, request.keys.size(), names);
}

std::optional<Error> KeyValue::cancel(Ticket ticket) {
  const auto found = waiters_.find(ticket);
  if (found == waiters_.end()) {
    return std::nullopt;
  }
  const auto& waiter = found->second;
  Error error{.code = Code::timed_out, .message = "timed out: " + describe_missing(waiter)};
  if (waiter.request.op == Op::barrier) {
    const auto barrier = barriers_.find(waiter.request.keys[0]);
    std::erase(barrier->second.arrived, ticket);
    if (barrier->second.arrived.empty()) {
      barriers_.erase(barrier);
    }
  } else {
    const auto queue = waiting_for_.find(waiter.request.keys[waiter.next]);
    std::erase(queue->second, ticket);
    if (queue->second.empty()) {
      waiting_for_.erase(queue);
    }
  }
  forget(ticket);
  return error;
}

void KeyValue::fail_all(const Error& error, std::vector<Answer>& answers) {
  for (const auto& [ticket, waiter] : waiters_) {
    answers.push_back({ticket, error});
    bytes_ -= waiter.bytes;
  }
  waiters_.clear();
  waiting_for_.clear();
  barriers_.clear();
}

}  // namespace tutti::rendezvous
