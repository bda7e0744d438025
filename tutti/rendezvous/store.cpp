#include "tutti/rendezvous/store.h"

#include <utility>

namespace tutti::rendezvous {
namespace {

Status done(const Result<Reply>& reply) { return reply ? Status() : Status(reply.error()); }

}  // namespace

Status Store::set(const std::string& key, std::string value, Deadline deadline) {
  return done(call({.op = Op::set, .keys = {key}, .values = {std::move(value)}}, deadline));
}

Result<std::string> Store::get(const std::string& key, Deadline deadline) {
  auto values = get_all({key}, deadline);
  if (!values) {
    return values.error();
  }
  return std::move(values.value().front());
}

Result<std::vector<std::string>> Store::get_all(const std::vector<std::string>& keys, Deadline deadline) {
  auto reply = call({.op = Op::get, .keys = keys, .values = {}}, deadline);
  if (!reply) {
    return reply.error();
  }
  if (reply.value().values.size() != keys.size()) {
    return Error{.code = Code::protocol, .message = "the store answered with another number of values than keys"};
  }
  return std::move(reply.value().values);
}

Status Store::wait(const std::vector<std::string>& keys, Deadline deadline) {
  return done(call({.op = Op::wait, .keys = keys, .values = {}}, deadline));
}

Result<std::int64_t> Store::add(const std::string& key, std::int64_t delta, Deadline deadline) {
  auto reply = call({.op = Op::add, .keys = {key}, .values = {}, .number = delta}, deadline);
  if (!reply) {
    return reply.error();
  }
  return reply.value().number;
}

Result<bool> Store::erase(const std::string& key, Deadline deadline) {
  auto reply = call({.op = Op::erase, .keys = {key}, .values = {}}, deadline);
  if (!reply) {
    return reply.error();
  }
  return reply.value().number != 0;
}

Status Store::barrier(const std::string& key, int participants, Deadline deadline) {
  return done(call({.op = Op::barrier, .keys = {key}, .values = {}, .number = participants}, deadline));
}

}  // namespace tutti::rendezvous
