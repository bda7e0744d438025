#include "tutti/comm/c10d_store.h"

#include <mutex>
#include <thread>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti {
namespace {

using rendezvous::Op;
using rendezvous::Reply;
using rendezvous::Request;
using Bytes = std::vector<uint8_t>;

std::string to_text(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }
Bytes to_bytes(const std::string& text) { return {text.begin(), text.end()}; }

/// c10d stores take one caller at a time: a wait would hold up everybody. So a wait is made of short ones.
class ForeignStore final : public rendezvous::Store {
 public:
  explicit ForeignStore(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

  Result<Reply> call(const Request& request, Deadline deadline) override {
    try {
      return call_or_throw(request, deadline);
    } catch (const std::exception& exception) {
      const auto* c10_error = dynamic_cast<const c10::Error*>(&exception);
      return Error{Code::system, fmt::format("the job's store failed: {}",
                                             c10_error ? c10_error->what_without_backtrace() : exception.what())};
    }
  }

 private:
  Result<Reply> call_or_throw(const Request& request, Deadline deadline) {
    if (request.op == Op::get || request.op == Op::wait) {
      return wait_for(request, deadline);
    }
    if (request.op == Op::barrier) {
      return meet(request, deadline);
    }
    const std::scoped_lock lock(mutex_);
    switch (request.op) {
      case Op::set:
        for (std::size_t i = 0; i < request.keys.size(); ++i) {
          store_->set(request.keys[i], Bytes(request.values[i].begin(), request.values[i].end()));
        }
        return Reply{};
      case Op::add: return Reply{.values = {}, .number = store_->add(request.keys.at(0), request.number)};
      case Op::erase: return Reply{.values = {}, .number = store_->deleteKey(request.keys.at(0)) ? 1 : 0};
      case Op::check: return Reply{.values = {}, .number = store_->check(request.keys) ? 1 : 0};
      default: return Error{Code::unsupported, "the c10d store behind this group cannot do that"};
    }
  }

  Result<Reply> wait_for(const Request& request, Deadline deadline) {
    constexpr std::chrono::milliseconds kMostPause{50};
    for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, kMostPause)) {
      {
        const std::scoped_lock lock(mutex_);
        if (store_->check(request.keys)) {
          Reply reply;
          for (const auto& key : request.op == Op::get ? request.keys : std::vector<std::string>{}) {
            reply.values.push_back(to_text(store_->get(key)));
          }
          return reply;
        }
      }
      if (deadline.expired()) {
        return Error{Code::timed_out, fmt::format("the store did not get all of {}", fmt::join(request.keys, ", "))};
      }
      std::this_thread::sleep_for(pause);
    }
  }

  /// Counts arrivals; the last one of each round opens a key that the others wait for.
  Result<Reply> meet(const Request& request, Deadline deadline) {
    std::int64_t arrivals = 0;
    std::string open;
    {
      const std::scoped_lock lock(mutex_);
      arrivals = store_->add(request.keys.at(0) + "/arrivals", 1);
      open = fmt::format("{}/open/{}", request.keys[0], (arrivals - 1) / request.number);
      if (arrivals % request.number == 0) {
        store_->set(open, Bytes{1});
      }
    }
    return wait_for({.op = Op::wait, .keys = {open}, .values = {}}, deadline);
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::mutex mutex_;
};

}  // namespace

C10dStore::C10dStore(std::shared_ptr<rendezvous::Store> store, std::chrono::milliseconds timeout)
    : c10d::Store(timeout), store_(std::move(store)) {}

Reply C10dStore::call(const Request& request, Deadline deadline) {
  auto result = store_->call(request, deadline);
  if (result) {
    return std::move(result).value();
  }
  if (request.op == Op::pop && result.error().code == Code::not_found) {
    throw c10::DistQueueEmptyError(result.error().message, nullptr);
  }
  throw c10::DistStoreError(result.error().message, nullptr);
}

// One connection serves any number of threads, so a clone is the same store with a time-out of its own.
c10::intrusive_ptr<c10d::Store> C10dStore::clone() { return c10::make_intrusive<C10dStore>(store_, timeout_); }

void C10dStore::set(const std::string& key, const Bytes& value) {
  call({.op = Op::set, .keys = {key}, .values = {to_text(value)}});
}

Bytes C10dStore::compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) {
  const auto reply = call({.op = Op::compare_set, .keys = {key}, .values = {to_text(expected), to_text(desired)}});
  return to_bytes(reply.values.at(0));
}

Bytes C10dStore::get(const std::string& key) {
  return to_bytes(call({.op = Op::get, .keys = {key}, .values = {}}).values.at(0));
}

int64_t C10dStore::add(const std::string& key, int64_t value) {
  return call({.op = Op::add, .keys = {key}, .values = {}, .number = value}).number;
}

bool C10dStore::deleteKey(const std::string& key) {
  return call({.op = Op::erase, .keys = {key}, .values = {}}).number != 0;
}

bool C10dStore::check(const std::vector<std::string>& keys) {
  return call({.op = Op::check, .keys = keys, .values = {}}).number != 0;
}

int64_t C10dStore::getNumKeys() { return call({.op = Op::count, .keys = {}, .values = {}}).number; }

void C10dStore::wait(const std::vector<std::string>& keys) { call({.op = Op::wait, .keys = keys, .values = {}}); }

void C10dStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  call({.op = Op::wait, .keys = keys, .values = {}}, Deadline::after(timeout));
}

void C10dStore::append(const std::string& key, const Bytes& value) {
  call({.op = Op::append, .keys = {key}, .values = {to_text(value)}});
}

std::vector<Bytes> C10dStore::multiGet(const std::vector<std::string>& keys) {
  std::vector<Bytes> values;
  for (const auto& value : call({.op = Op::get, .keys = keys, .values = {}}).values) {
    values.push_back(to_bytes(value));
  }
  return values;
}

void C10dStore::multiSet(const std::vector<std::string>& keys, const std::vector<Bytes>& values) {
  TORCH_CHECK_VALUE(keys.size() == values.size(), "multi_set: ", keys.size(), " keys and ", values.size(), " values");
  Request request{.op = Op::set, .keys = keys, .values = {}};
  for (const auto& value : values) {
    request.values.push_back(to_text(value));
  }
  call(request);
}

void C10dStore::queuePush(const std::string& key, const Bytes& value) {
  call({.op = Op::push, .keys = {key}, .values = {to_text(value)}});
}

Bytes C10dStore::queuePop(const std::string& key, bool block) {
  return to_bytes(call({.op = Op::pop, .keys = {key}, .values = {}, .number = block ? 1 : 0}).values.at(0));
}

int64_t C10dStore::queueLen(const std::string& key) {
  return call({.op = Op::queue_length, .keys = {key}, .values = {}}).number;
}

std::vector<std::string> C10dStore::listKeys() { return call({.op = Op::list, .keys = {}, .values = {}}).values; }

void C10dStore::barrier(const std::string& key, int64_t world_size, const std::chrono::milliseconds& timeout) {
  call({.op = Op::barrier, .keys = {key}, .values = {}, .number = world_size}, Deadline::after(timeout));
}

std::shared_ptr<rendezvous::Store> from_c10d(c10::intrusive_ptr<c10d::Store> store) {
  return std::make_shared<ForeignStore>(std::move(store));
}

}  // namespace tutti
