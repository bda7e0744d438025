#pragma once

// For tests: runs a function on every rank of a group, over each kind of engine.

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tutti/engine/local/local.h"
#include "tutti/engine/shm/shm.h"
#include "tutti/rendezvous/client.h"
#include "tutti/rendezvous/server.h"

namespace tutti::engine {

enum class Kind { threads, processes, processes_symmetric };

inline std::string kind_name(const testing::TestParamInfo<Kind>& info) {
  return info.param == Kind::threads ? "local" : info.param == Kind::processes ? "shm" : "shm_symmetric";
}

/// An engine whose calls are made with their blocks in symmetric memory, whatever memory the test has them in.
class InSymmetricMemory final : public Engine {
 public:
  explicit InSymmetricMemory(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  std::string_view name() const override { return engine_->name(); }
  Rank rank() const override { return engine_->rank(); }
  int ranks() const override { return engine_->ranks(); }
  Status can(Op op) const override { return engine_->can(op); }
  std::shared_ptr<Reach> reach() const override { return engine_->reach(); }
  void send(Rank to, std::uint64_t tag, ConstBlock bytes, Deadline deadline, Done done) override {
    engine_->send(to, tag, bytes, deadline, std::move(done));
  }
  void receive(Rank from, std::uint64_t tag, Block bytes, Deadline deadline, Received received) override {
    engine_->receive(from, tag, bytes, deadline, std::move(received));
  }
  plan::GroupShape shape() const override { return engine_->shape(); }
  Status choose(Op op, const OpChoices& choices) override { return engine_->choose(op, choices); }
  std::vector<Links::Sent> sent() const override { return engine_->sent(); }
  void abort(const Error& why) override { engine_->abort(why); }
  std::optional<Error> broken() const override { return engine_->broken(); }
  bool on_own_thread() const override { return engine_->on_own_thread(); }

  Status run(const Call& call, Deadline deadline) override {
    auto moved = call;
    moved.in = {};
    moved.out = {};
    std::size_t in_bytes = 0;
    std::size_t out_bytes = 0;
    for (const auto& block : call.in) {
      in_bytes += block.size();
    }
    for (const auto& block : call.out) {
      out_bytes += block.size();
    }
    const bool in_place = call.in.size() == 1 && call.out.size() == 1 && call.in[0].data() == call.out[0].data();
    auto* in = reach()->allocate(in_bytes).value();
    auto* out = in_place ? in : reach()->allocate(out_bytes).value();
    auto* at = in;
    for (const auto& block : call.in) {
      std::copy(block.begin(), block.end(), at);
      moved.in.push_back({at, block.size()});
      at += block.size();
    }
    at = out;
    for (const auto& block : call.out) {
      if (!in_place) {
        std::copy(block.begin(), block.end(), at);
      }
      moved.out.push_back({at, block.size()});
      at += block.size();
    }
    const auto status = engine_->run(moved, deadline);
    for (std::size_t i = 0; i < call.out.size(); ++i) {
      std::copy(moved.out[i].begin(), moved.out[i].end(), call.out[i].begin());
    }
    reach()->free(in);
    if (!in_place) {
      reach()->free(out);
    }
    return status;
  }

 private:
  std::unique_ptr<Engine> engine_;
};

inline Deadline soon() { return Deadline::after(std::chrono::seconds(60)); }

using RankFunction = std::function<void(Engine&)>;

inline void run_threads(int ranks, const RankFunction& function) {
  LocalMemories memories;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto engine = make_local_engine(memories, "test", Rank{rank}, ranks);
      ASSERT_TRUE(engine.ok()) << engine.error().message;
      function(*engine.value());
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

/// What a child does: joins, runs, and tells by its exit code whether an expectation failed.
inline int run_child(const rendezvous::Address& address, Rank rank, int ranks, const RankFunction& function,
                     bool symmetric) {
  auto store = rendezvous::join({.address = address, .rank = rank, .world_size = ranks, .secret = {}}, soon());
  if (!store) {
    ADD_FAILURE() << store.error().message;
    return 1;
  }
  auto engine = make_shm_engine(*store.value(), "test", rank, ranks, soon());
  if (!engine) {
    ADD_FAILURE() << engine.error().message;
    return 1;
  }
  std::unique_ptr<Engine> used = std::move(engine).value();
  if (symmetric) {
    used = std::make_unique<InSymmetricMemory>(std::move(used));
  }
  function(*used);
  return testing::Test::HasFailure() ? 1 : 0;
}

/// The children are forked before any thread is started here. Returns their wait statuses, by rank.
inline std::vector<int> run_processes(int ranks, const RankFunction& function, bool symmetric = false) {
  const auto address = rendezvous::Address::random_unix();
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(::fork());
    if (children.back() == 0) {
      const int code = run_child(address, Rank{rank}, ranks, function, symmetric);
      std::fflush(nullptr);
      ::_exit(code);
    }
  }
  auto server = rendezvous::Server::start(
      {.world_size = ranks, .listen = {address}, .secret = rendezvous::Secret::make().value()});
  EXPECT_TRUE(server.ok()) << server.error().message;
  std::vector<int> statuses;
  for (const auto child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    statuses.push_back(status);
  }
  return statuses;
}

inline void run_engines(Kind kind, int ranks, const RankFunction& function) {
  if (kind == Kind::threads) {
    run_threads(ranks, function);
    return;
  }
  for (const int status : run_processes(ranks, function, kind == Kind::processes_symmetric)) {
    EXPECT_EQ(status, 0);
  }
}

/// Elements and bytes of a test's vectors.
template <class T>
ConstBlock bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}
template <class T>
Block writable(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

/// i + 1000 * rank, i = 0 .. count-1: whole numbers, so that sums are exact.
inline std::vector<float> ramp(std::size_t count, int rank) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(i % 4096) + 1000.0F * static_cast<float>(rank);
  }
  return values;
}

inline std::vector<float> ramp_sum(std::size_t count, int ranks) {
  std::vector<float> sum(count, 0.0F);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto one = ramp(count, rank);
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] += one[i];
    }
  }
  return sum;
}

}  // namespace tutti::engine
