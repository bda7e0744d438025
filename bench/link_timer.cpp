#include "bench/link_timer.h"

#include <algorithm>

#include <fmt/format.h>

#include "bench/measure.h"
#include "tutti/comm/backend.h"

namespace bench {
namespace {

using tutti::engine::Block;
using tutti::engine::Call;
using tutti::engine::ConstBlock;
using tutti::engine::Engine;
using EngineOp = tutti::engine::Op;
using tutti::plan::Op;

void run(Engine& engine, const Call& call) {
  if (auto status = engine.run(call, tutti::Deadline::after(std::chrono::minutes(5))); !status) {
    fail(status.error().message);
  }
}

/// An engine as what timing needs of ranks.
class EngineWorld final : public World {
 public:
  explicit EngineWorld(Engine& engine) : engine_(engine) {}
  std::size_t rank() const override { return tutti::to_index(engine_.rank()); }
  std::size_t ranks() const override { return static_cast<std::size_t>(engine_.ranks()); }
  void barrier() override { run(engine_, {.op = EngineOp::barrier}); }
  double agree(double value) override {
    return with({&value, 1}, {.op = EngineOp::broadcast, .dtype = tutti::kernels::DType::float64}), value;
  }
  std::vector<double> slowest(std::vector<double> values) override {
    with(
        values,
        {.op = EngineOp::all_reduce, .dtype = tutti::kernels::DType::float64, .reduce = tutti::kernels::ReduceOp::max});
    return values;
  }

 private:
  void with(std::span<double> values, Call call) {
    const auto bytes = std::as_writable_bytes(values);
    if (call.op == EngineOp::all_reduce || rank() == 0) {
      call.in = {ConstBlock(bytes)};
    }
    if (call.op == EngineOp::all_reduce || rank() != 0) {
      call.out = {Block(bytes)};
    }
    run(engine_, call);
  }

  Engine& engine_;
};

EngineOp engine_op(Op op) {
  for (std::size_t i = 0; i < std::size(tutti::engine::kOpNames); ++i) {
    if (const auto each = static_cast<EngineOp>(i); tutti::engine::plan_op(each) == op) {
      return each;
    }
  }
  fail("an operation that has no plan");
}

/// One operation in memory that grows to what it needs: zeros, so that sums of sums stay what they are.
class Operation {
 public:
  Operation(const tutti::plan::TimedPlan& plan, tutti::Rank rank, std::vector<float>& memory) {
    const tutti::plan::Shape shape{.op = plan.request.op, .ranks = plan.request.ranks, .root = plan.request.root};
    call_ = {.op = plan.bytes == 0 ? EngineOp::barrier : engine_op(plan.request.op),
             .dtype = tutti::kernels::DType::float32};
    if (plan.bytes == 0) {
      return;
    }
    const bool in_place = shape.op == Op::all_reduce || shape.op == Op::broadcast;
    const auto ins = shape.input_blocks(rank);
    const auto outs = in_place ? 0 : shape.output_blocks(rank);
    memory.resize(std::max(memory.size(), (std::max(ins + outs, 1U) * plan.bytes + 64) / sizeof(float)));
    auto* const bytes = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
    const auto block = [&](std::size_t number) { return Block(bytes + number * plan.bytes, plan.bytes); };
    for (std::size_t i = 0; i < ins; ++i) {
      call_.in.push_back(block(i));
    }
    for (std::size_t i = 0; i < outs; ++i) {
      call_.out.push_back(block(ins + i));
    }
    if (shape.op == Op::all_reduce || (shape.op == Op::broadcast && ins == 0)) {
      call_.out.push_back(block(0));
    }
  }

  const Call& call() const { return call_; }

 private:
  Call call_;
};

double time_on(Engine& engine, const tutti::plan::TimedPlan& plan, const Options& options, std::vector<float>& memory) {
  const auto& request = plan.request;
  const auto choose = [&](const tutti::engine::OpChoices& choices) {
    if (auto chosen = engine.choose(engine_op(request.op), choices); !chosen) {
      fail(chosen.error().message);
    }
  };
  const Operation operation(plan, engine.rank(), memory);
  EngineWorld world(engine);
  choose(tutti::plan::Choice{.algorithm = request.algorithm, .chunks = request.chunks, .leaders = request.leaders});
  const auto summary = measure(
      world, options, [&] { run(engine, operation.call()); }, [] {});
  choose({});
  return world.rank() == 0 ? summary.median_us / 1e6 : 0;
}

}  // namespace

Ranks LinkTimer::ranks() const {
  const int of_host = world_.local_size();
  if (world_.size() % of_host != 0) {
    fail("--links: all hosts need as many ranks");
  }
  return {.hosts = world_.size() / of_host, .of_host = of_host};
}

double LinkTimer::time(const LinkCase& one) {
  const auto members = one.members(ranks());
  auto found = groups_.find(members);
  if (found == groups_.end()) {
    const bool member = std::find(members.begin(), members.end(), world_.rank()) != members.end();
    found = groups_.emplace(members, member ? world_.group().subgroup(members) : std::nullopt).first;
  }
  // Waiting for the store is the one way to wait that takes no turns on a core.
  const auto over = fmt::format("bench/links/{}", timed_++);
  if (!found->second) {
    world_.store()->wait({over});
    return 0;
  }
  auto* const backend = dynamic_cast<tutti::Backend*>(found->second->process_group()->getBackend(at::kCPU).get());
  if (backend == nullptr) {
    fail("--links: these ranks are joined by another's backend, which runs no plans");
  }
  double seconds = 0;
  backend->run_on_engine([&](Engine& engine) {
    seconds = time_on(engine, one.plan, options_, memory_);
    return tutti::Status();
  });
  if (found->second->rank() == tutti::Rank{0} && static_cast<int>(members.size()) < world_.size()) {
    world_.store()->set(over, std::vector<uint8_t>{1});
  }
  return seconds;
}

}  // namespace bench
