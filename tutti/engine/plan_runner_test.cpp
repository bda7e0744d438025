#include "tutti/engine/plan_runner.h"

#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/engine/ring_links.h"
#include "tutti/engine/test_ranks.h"
#include "tutti/plan/test_formula.h"

namespace tutti::engine {
namespace {

using plan::Algorithm;
using plan::Request;
using testing::HasSubstr;

/// Ranks as threads over one hub.
class Ranks {
 public:
  explicit Ranks(int count, std::size_t link_bytes = 0) : layout_(HubLayout::for_ranks(count)) {
    layout_.link_bytes = link_bytes == 0 ? layout_.link_bytes : link_bytes;
    memory_.resize(layout_.total_bytes() + 4096);
  }

  template <class Function>
  void run(const Function& function) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < layout_.ranks; ++rank) {
      threads.emplace_back([&, rank] {
        auto* start = memory_.data() + (4096 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 4096) % 4096;
        Hub hub(start, layout_, Rank{rank});
        function(hub);
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }

 private:
  HubLayout layout_;
  std::vector<std::byte> memory_;
};

Op engine_op(plan::Op op) {
  switch (op) {
    case plan::Op::all_reduce: return Op::all_reduce;
    case plan::Op::reduce_scatter: return Op::reduce_scatter;
    case plan::Op::all_gather: return Op::all_gather;
    case plan::Op::broadcast: return Op::broadcast;
    case plan::Op::reduce: return Op::reduce;
    case plan::Op::all_to_all: return Op::all_to_all;
    case plan::Op::gather: return Op::gather;
    case plan::Op::scatter: return Op::scatter;
  }
  return Op::barrier;
}

int value_of(int rank, int block, std::size_t i) { return rank * 10007 + block * 101 + static_cast<int>(i % 97); }

/// One rank's blocks for a request, filled, and what they must become.
struct Data {
  std::vector<std::vector<int>> in;
  std::vector<std::vector<int>> out;
  std::vector<std::vector<int>> expected;

  Data(const Request& request, Rank me, std::size_t count) {
    const plan::Shape shape{.op = request.op, .ranks = request.ranks, .root = request.root};
    const int rank = to_int(me);
    for (int block = 0; block < static_cast<int>(shape.input_blocks(me)); ++block) {
      auto& values = in.emplace_back(count);
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = value_of(rank, block, i);
      }
    }
    const bool keeps = request.op == plan::Op::broadcast && me == request.root;  // has no output of its own
    for (int block = 0; block < (keeps ? 0 : static_cast<int>(shape.output_blocks(me))); ++block) {
      out.emplace_back(count, -1);
      auto& values = expected.emplace_back(count, 0);
      for (std::size_t i = 0; i < count; ++i) {
        const auto root = to_int(request.root);
        switch (request.op) {
          case plan::Op::all_reduce:
          case plan::Op::reduce:
          case plan::Op::reduce_scatter:
            for (int from = 0; from < request.ranks; ++from) {
              values[i] += value_of(from, request.op == plan::Op::reduce_scatter ? rank : 0, i);
            }
            break;
          case plan::Op::all_gather:
          case plan::Op::gather: values[i] = value_of(block, 0, i); break;
          case plan::Op::all_to_all: values[i] = value_of(block, rank, i); break;
          case plan::Op::broadcast: values[i] = value_of(root, 0, i); break;
          case plan::Op::scatter: values[i] = value_of(root, rank, i); break;
        }
      }
    }
  }

  Call call(const Request& request) {
    Call call{.op = engine_op(request.op), .dtype = kernels::DType::int32, .root = request.root};
    for (const auto& values : in) {
      call.in.push_back(bytes_of(values));
    }
    for (auto& values : out) {
      call.out.push_back(writable(values));
    }
    return call;
  }
};

Doing doing_of(const Call& call, std::size_t bytes) {
  Doing doing{.card = make_card(call), .sequence = 1};
  doing.card.bytes = bytes;
  return doing;
}

PlanRunner runner_of(const Request& request, Rank rank) {
  return {plan::shape_of(request).value(), plan::build(request, rank).value()};
}

Request some_request(plan::Op op, Algorithm algorithm, int ranks) {
  Request request{.op = op, .algorithm = algorithm, .ranks = ranks, .root = Rank{ranks / 2}};
  request.chunks = plan::takes_chunks(algorithm, op) ? 2 : 1;
  request.hosts.resize(static_cast<std::size_t>((ranks + 1) / 2));
  for (int rank = 0; rank < ranks; ++rank) {
    request.hosts[static_cast<std::size_t>(rank / 2)].push_back(Rank{rank});
  }
  return request;
}

void expect_right(const Request& request, std::size_t count, std::size_t link_bytes) {
  Ranks(request.ranks, link_bytes).run([&](Hub& hub) {
    RingLinks links(hub);
    auto runner = runner_of(request, hub.rank());
    for (int again = 0; again < 2; ++again) {
      Data data(request, hub.rank(), count);
      const auto call = data.call(request);
      const auto status = runner.run(call, links, doing_of(call, count * sizeof(int)), soon());
      EXPECT_TRUE(status) << status.error().message;
      EXPECT_EQ(data.out, data.expected) << to_string(request.algorithm) << " " << to_string(request.op) << " of "
                                         << request.ranks << " ranks, " << count << " elements";
    }
  });
}

TEST(PlanRunner, EveryPlanOverRings) {
  for (const auto op : plan::kEveryOp) {
    for (const auto algorithm : plan::algorithms_for(op)) {
      for (const int ranks : {1, 2, 3, 5}) {
        for (const std::size_t count : {1U, 3U, 1003U}) {
          expect_right(some_request(op, algorithm, ranks), count, count == 1003 ? 300 : 0);
        }
      }
    }
  }
}

TEST(PlanRunner, InPlace) {
  for (const auto algorithm : plan::algorithms_for(plan::Op::all_reduce)) {
    const auto request = some_request(plan::Op::all_reduce, algorithm, 3);
    Ranks(3).run([&](Hub& hub) {
      RingLinks links(hub);
      auto values = ramp(20011, to_int(hub.rank()));
      Call call{.op = Op::all_reduce, .dtype = kernels::DType::float32, .in = {bytes_of(values)}, .out = {}};
      call.out.push_back(writable(values));
      EXPECT_TRUE(runner_of(request, hub.rank()).run(call, links, doing_of(call, values.size() * 4), soon()));
      EXPECT_EQ(values, ramp_sum(20011, 3)) << to_string(algorithm);
    });
  }
}

TEST(PlanRunner, AveragesAndMultiplies) {
  const auto request = some_request(plan::Op::all_reduce, Algorithm::ring, 3);
  Ranks(3).run([&](Hub& hub) {
    RingLinks links(hub);
    auto runner = runner_of(request, hub.rank());
    std::vector<float> values(7, 1.0F + static_cast<float>(to_int(hub.rank())));
    Call call{.op = Op::all_reduce, .dtype = kernels::DType::float32, .reduce = kernels::ReduceOp::avg};
    call.in.push_back(bytes_of(values));
    call.out.push_back(writable(values));
    EXPECT_TRUE(runner.run(call, links, doing_of(call, 28), soon()));
    EXPECT_THAT(values, testing::Each(2.0F));
    call.reduce = kernels::ReduceOp::premul_sum;
    call.factor = 1.0 + to_int(hub.rank());
    EXPECT_TRUE(runner.run(call, links, doing_of(call, 28), soon()));
    EXPECT_THAT(values, testing::Each(12.0F));
  });
}

/// What really went over the links, by rank.
std::vector<std::vector<Links::Sent>> sent_by(const Request& request, std::size_t count) {
  std::vector<std::vector<Links::Sent>> all(static_cast<std::size_t>(request.ranks));
  Ranks(request.ranks).run([&](Hub& hub) {
    RingLinks links(hub);
    Data data(request, hub.rank(), count);
    const auto call = data.call(request);
    EXPECT_TRUE(runner_of(request, hub.rank()).run(call, links, doing_of(call, count * sizeof(int)), soon()));
    all[to_index(hub.rank())] = links.sent();
  });
  return all;
}

/// Of the ranks, and of the links, those over which most went.
plan::Formula most_of(const std::vector<std::vector<Links::Sent>>& all, std::size_t block_bytes) {
  plan::Formula most;
  for (const auto& by_peer : all) {
    Links::Sent sum;
    for (const auto& sent : by_peer) {
      sum.bytes += sent.bytes;
      sum.messages += sent.messages;
      most.on_a_link = std::max(most.on_a_link, static_cast<double>(sent.bytes) / static_cast<double>(block_bytes));
    }
    most.sent = std::max(most.sent, static_cast<double>(sum.bytes) / static_cast<double>(block_bytes));
    most.messages = std::max(most.messages, static_cast<std::uint32_t>(sum.messages));
  }
  return most;
}

TEST(PlanRunner, WhatIsSentIsTheFormula) {
  for (const auto op : plan::kEveryOp) {
    for (const auto algorithm : plan::algorithms_for(op)) {
      for (const int ranks : {2, 3, 4, 6, 8}) {
        const auto request = plan::on_two_hosts({.op = op, .algorithm = algorithm, .ranks = ranks, .root = Rank{1}});
        const auto count = std::size_t{16} * plan::shape_of(request).value().pieces;  // all pieces are equally long
        const auto measured = most_of(sent_by(request, count), count * sizeof(int));
        const auto formula = plan::formula_of(request);
        const auto what = fmt::format("{} {} of {} ranks", to_string(op), to_string(algorithm), ranks);
        EXPECT_DOUBLE_EQ(measured.sent, formula.sent) << what;
        EXPECT_DOUBLE_EQ(measured.on_a_link, formula.on_a_link) << what;
        EXPECT_EQ(measured.messages, formula.messages) << what;
      }
    }
  }
}

TEST(PlanRunner, ARankThatDoesNotComeIsNamed) {
  const auto request = some_request(plan::Op::all_reduce, Algorithm::ring, 3);
  Ranks(3).run([&](Hub& hub) {
    if (hub.rank() == Rank{1}) {
      return;
    }
    RingLinks links(hub);
    std::vector<int> values(1000, 1);
    Call call{.op = Op::all_reduce, .dtype = kernels::DType::int32};
    call.in.push_back(bytes_of(values));
    call.out.push_back(writable(values));
    const auto status = runner_of(request, hub.rank())
                            .run(call, links, doing_of(call, 4000), Deadline::after(std::chrono::milliseconds(50)));
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::timed_out);
    EXPECT_THAT(status.error().message, HasSubstr("all_reduce #1 (sum, int32, 1000 elements)"));
  });
}

}  // namespace
}  // namespace tutti::engine
