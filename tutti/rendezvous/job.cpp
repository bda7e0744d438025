#include "tutti/rendezvous/job.h"

#include <utility>

#include <fmt/format.h>

namespace tutti::rendezvous {
namespace {

Job::Out answer(ConnectionId to, std::uint64_t request, Result<Reply> result) {
  Frame frame{.id = request, .body = Cancel{}};
  if (result) {
    frame.body = std::move(result).value();
  } else {
    frame.body = result.error();
  }
  auto bytes = encode(frame);
  if (!bytes) {  // a list of very many keys
    frame.body =
        Error{.code = Code::resource_exhausted, .message = "the answer is too large: " + bytes.error().message};
    bytes = encode(frame);
  }
  return {.to = to, .bytes = std::move(bytes).value()};
}

}  // namespace

Result<Generation> Job::hello(ConnectionId connection, const Hello& hello) {
  auto generation = membership_.admit(hello);
  if (generation) {
    members_.emplace(connection, Member{.rank = hello.rank, .generation = generation.value(), .waiting = {}});
    stores_.try_emplace(generation.value());
  }
  return generation;
}

Result<bool> Job::frame(ConnectionId connection, Frame frame, std::vector<Out>& out) {
  require(members_.contains(connection), "frames come from members");
  if (const auto* asked = std::get_if<Request>(&frame.body)) {
    request(connection, frame.id, *asked, out);
    return true;
  }
  if (std::holds_alternative<Cancel>(frame.body)) {
    cancel(connection, frame.id, out);
    return true;
  }
  if (std::holds_alternative<Goodbye>(frame.body)) {
    remove(connection, true, out);
    return false;
  }
  return Error{.code = Code::protocol, .message = "sent a frame that only the store sends"};
}

void Job::request(ConnectionId connection, std::uint64_t id, const Request& request, std::vector<Out>& out) {
  auto& member = members_.at(connection);
  if (const auto* failure = membership_.failure(member.generation)) {
    out.push_back(answer(connection, id, *failure));
    return;
  }
  if (member.waiting.contains(id)) {
    out.push_back(answer(connection, id, Error{.code = Code::protocol, .message = "two calls have the same number"}));
    return;
  }
  if (member.waiting.size() >= kMaxWaiting) {
    out.push_back(
        answer(connection, id,
               Error{.code = Code::resource_exhausted,
                     .message = fmt::format("{} calls of rank {} wait already", kMaxWaiting, to_int(member.rank))}));
    return;
  }
  const Ticket ticket{next_ticket_++};
  callers_.emplace(ticket, Caller{.connection = connection, .request = id});
  member.waiting.emplace(id, ticket);
  std::vector<KeyValue::Answer> answers;
  stores_.at(member.generation).apply(ticket, request, answers);
  deliver(answers, out);
}

void Job::cancel(ConnectionId connection, std::uint64_t id, std::vector<Out>& out) {
  const auto& member = members_.at(connection);
  const auto found = member.waiting.find(id);
  if (found == member.waiting.end()) {
    return;  // its answer is on the way
  }
  const Ticket ticket = found->second;
  auto error = stores_.at(member.generation).cancel(ticket);
  require(error.has_value(), "a call that was not answered waits");
  std::vector<KeyValue::Answer> answers;
  answers.push_back({ticket, std::move(*error)});
  deliver(answers, out);
}

void Job::deliver(std::vector<KeyValue::Answer>& answers, std::vector<Out>& out) {
  for (auto& [ticket, result] : answers) {
    const auto caller = callers_.extract(ticket).mapped();
    members_.at(caller.connection).waiting.erase(caller.request);
    out.push_back(answer(caller.connection, caller.request, std::move(result)));
  }
}

void Job::remove(ConnectionId connection, bool in_peace, std::vector<Out>& out) {
  const auto member = std::move(members_.extract(connection).mapped());
  auto& store = stores_.at(member.generation);
  for (const auto& [id, ticket] : member.waiting) {
    store.cancel(ticket);
    callers_.erase(ticket);
  }
  const bool last =
      in_peace ? membership_.leave(member.generation, member.rank) : membership_.lose(member.generation, member.rank);
  if (last) {
    stores_.erase(member.generation);
  } else if (!in_peace) {
    fail(member.generation, out);
  }
}

void Job::fail(Generation generation, std::vector<Out>& out) {
  const auto* failure = membership_.failure(generation);
  const auto store = stores_.find(generation);
  if (failure == nullptr || store == stores_.end()) {
    return;
  }
  std::vector<KeyValue::Answer> answers;
  store->second.fail_all(*failure, answers);
  deliver(answers, out);
}

std::string Job::lost(ConnectionId connection, std::vector<Out>& out) {
  const auto& member = members_.at(connection);
  const Rank rank = member.rank;
  const Generation generation = member.generation;
  remove(connection, false, out);
  const auto* failure = membership_.failure(generation);
  return failure != nullptr && failure->rank == rank
             ? failure->message
             : fmt::format("rank {} is lost: its connection to the store broke without a goodbye", to_int(rank));
}

void Job::declare_lost(Rank rank, const std::string& sentence, std::vector<Out>& out) {
  membership_.declare_lost(rank, sentence);
  for (const auto& [generation, store] : stores_) {
    fail(generation, out);
  }
}

}  // namespace tutti::rendezvous
