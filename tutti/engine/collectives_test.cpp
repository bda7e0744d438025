// Every collective over every engine, for several numbers of ranks and lengths around the ends of chunks.

#include "tutti/engine/collectives.h"

#include <sys/mman.h>

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/engine/test_ranks.h"

namespace tutti::engine {
namespace {

using kernels::DType;
using kernels::ReduceOp;
using ::testing::HasSubstr;

class CollectivesTest : public testing::TestWithParam<Kind> {
 protected:
  /// Runs on 1, 2, 3 and 5 ranks.
  void on_ranks(const RankFunction& function) {
    for (const int ranks : {1, 2, 3, 5}) {
      run_engines(GetParam(), ranks, function);
    }
  }
};

/// None, one, what fits a notice and just does not, odd, just too much for one shot, and several chunks with a short
/// last one.
std::vector<std::size_t> lengths(const Engine& engine) {
  const auto roomy = Thresholds::for_ranks(engine.ranks(), false);
  const auto crowded = Thresholds::for_ranks(engine.ranks(), true);
  const auto reachable = roomy.one_shot_reachable / sizeof(float);
  const auto chunk = HubLayout::for_ranks(engine.ranks()).slot_bytes / sizeof(float);
  return {0,
          1,
          4,
          5,
          reachable,
          reachable + 1,
          1003,
          roomy.one_shot / sizeof(float) + 1,
          crowded.one_shot / sizeof(float) + 1,
          5 * chunk + 7};
}

void expect_ok(const Status& status) { ASSERT_TRUE(status.ok()) << status.error().message; }

TEST_P(CollectivesTest, AllReduceSums) {
  on_ranks([](Engine& engine) {
    for (const auto count : lengths(engine)) {
      auto grads = ramp(count, to_int(engine.rank()));
      expect_ok(engine.run(
          {.op = Op::all_reduce, .dtype = DType::float32, .in = {bytes_of(grads)}, .out = {writable(grads)}}, soon()));
      EXPECT_EQ(grads, ramp_sum(count, engine.ranks()));
    }
  });
}

/// Shelves and slots change owners from call to call, and streaming stores are tried: the first calls of a size are not
/// like the later ones.
TEST_P(CollectivesTest, ManyInARowOfChangingLengths) {
  on_ranks([](Engine& engine) {
    const auto ranks = static_cast<std::size_t>(engine.ranks());
    const auto me = to_index(engine.rank());
    for (std::size_t i = 0; i < 60; ++i) {
      const std::size_t count = std::array<std::size_t, 5>{9001, 1003, 300'007, 7, 16'384}[i % 5];
      auto sum = ramp(count, to_int(engine.rank()));
      expect_ok(engine.run(
          {.op = Op::all_reduce, .dtype = DType::float32, .in = {bytes_of(sum)}, .out = {writable(sum)}}, soon()));
      ASSERT_EQ(sum, ramp_sum(count, engine.ranks())) << "all_reduce " << i;
      const auto part = count / ranks;
      auto sent = ramp(part * ranks, to_int(engine.rank()));
      std::vector<float> received(part * ranks, -1.0F);
      Call call{.op = i % 2 == 0 ? Op::all_to_all : Op::all_gather, .dtype = DType::float32};
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        if (call.op == Op::all_to_all || rank == me) {
          call.in.push_back(bytes_of(sent).subspan(rank * part * sizeof(float), part * sizeof(float)));
        }
        call.out.push_back(writable(received).subspan(rank * part * sizeof(float), part * sizeof(float)));
      }
      expect_ok(engine.run(call, soon()));
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto theirs = ramp(part * ranks, static_cast<int>(rank));
        const auto from = call.op == Op::all_to_all ? me : rank;
        for (std::size_t k = 0; k < part; ++k) {
          ASSERT_EQ(received[rank * part + k], theirs[from * part + k])
              << to_string(call.op) << " " << i << ", from rank " << rank << ", element " << k;
        }
      }
    }
  });
}

TEST_P(CollectivesTest, AllReduceAverages) {
  on_ranks([](Engine& engine) {
    std::vector<double> value{static_cast<double>(3 * to_int(engine.rank()))};
    expect_ok(engine.run({.op = Op::all_reduce,
                          .dtype = DType::float64,
                          .reduce = ReduceOp::avg,
                          .in = {bytes_of(value)},
                          .out = {writable(value)}},
                         soon()));
    EXPECT_EQ(value[0], 1.5 * (engine.ranks() - 1));
  });
}

TEST_P(CollectivesTest, ReduceReachesTheRootOnly) {
  on_ranks([](Engine& engine) {
    const Rank root{engine.ranks() - 1};
    const auto mine = ramp(1003, to_int(engine.rank()));
    std::vector<float> out(1003, -1.0F);
    Call call{.op = Op::reduce, .dtype = DType::float32, .root = root, .in = {bytes_of(mine)}};
    if (engine.rank() == root) {
      call.out = {writable(out)};
    }
    expect_ok(engine.run(call, soon()));
    EXPECT_EQ(out, engine.rank() == root ? ramp_sum(1003, engine.ranks()) : std::vector<float>(1003, -1.0F));
  });
}

TEST_P(CollectivesTest, BroadcastFromEveryRoot) {
  on_ranks([](Engine& engine) {
    for (int root = 0; root < engine.ranks(); ++root) {
      for (const auto count : lengths(engine)) {
        const bool mine = engine.rank() == Rank{root};
        auto values = mine ? ramp(count, root) : std::vector<float>(count, -1.0F);
        Call call{.op = Op::broadcast, .dtype = DType::float32, .root = Rank{root}};
        if (mine) {
          call.in = {bytes_of(values)};
        } else {
          call.out = {writable(values)};
        }
        expect_ok(engine.run(call, soon()));
        EXPECT_EQ(values, ramp(count, root));
      }
    }
  });
}

/// A length for each rank, all different; the first is none.
std::size_t uneven(std::size_t count, int rank) { return count * static_cast<std::size_t>(rank); }

TEST_P(CollectivesTest, AllGatherOfUnevenBlocks) {
  on_ranks([](Engine& engine) {
    for (const auto count : lengths(engine)) {
      const auto mine = ramp(uneven(count, to_int(engine.rank())), to_int(engine.rank()));
      std::vector<std::vector<float>> all;
      Call call{.op = Op::all_gather, .dtype = DType::float32, .in = {bytes_of(mine)}};
      for (int rank = 0; rank < engine.ranks(); ++rank) {
        all.emplace_back(uneven(count, rank), -1.0F);
      }
      for (auto& one : all) {
        call.out.push_back(writable(one));
      }
      expect_ok(engine.run(call, soon()));
      for (int rank = 0; rank < engine.ranks(); ++rank) {
        EXPECT_EQ(all[static_cast<std::size_t>(rank)], ramp(uneven(count, rank), rank));
      }
    }
  });
}

TEST_P(CollectivesTest, ReduceScatterOfUnevenBlocks) {
  on_ranks([](Engine& engine) {
    for (const auto count : lengths(engine)) {
      std::vector<std::vector<float>> inputs;
      Call call{.op = Op::reduce_scatter, .dtype = DType::float32};
      for (int to = 0; to < engine.ranks(); ++to) {
        inputs.push_back(ramp(uneven(count, to), to_int(engine.rank())));
      }
      for (const auto& one : inputs) {
        call.in.push_back(bytes_of(one));
      }
      std::vector<float> out(uneven(count, to_int(engine.rank())), -1.0F);
      call.out = {writable(out)};
      expect_ok(engine.run(call, soon()));
      EXPECT_EQ(out, ramp_sum(out.size(), engine.ranks()));
    }
  });
}

TEST_P(CollectivesTest, AllToAllOfUnevenBlocks) {
  on_ranks([](Engine& engine) {
    const auto length = [](int from, int to) { return static_cast<std::size_t>(from * 70001 + to * 13); };
    const int me = to_int(engine.rank());
    std::vector<std::vector<float>> inputs;
    std::vector<std::vector<float>> outputs;
    Call call{.op = Op::all_to_all, .dtype = DType::float32};
    for (int peer = 0; peer < engine.ranks(); ++peer) {
      inputs.push_back(ramp(length(me, peer), 10 * me + peer));
      outputs.emplace_back(length(peer, me), -1.0F);
    }
    for (std::size_t peer = 0; peer < inputs.size(); ++peer) {
      call.in.push_back(bytes_of(inputs[peer]));
      call.out.push_back(writable(outputs[peer]));
    }
    expect_ok(engine.run(call, soon()));
    for (int peer = 0; peer < engine.ranks(); ++peer) {
      EXPECT_EQ(outputs[static_cast<std::size_t>(peer)], ramp(length(peer, me), 10 * peer + me));
    }
  });
}

TEST_P(CollectivesTest, GatherThenScatterComesBack) {
  on_ranks([](Engine& engine) {
    const Rank root{engine.ranks() / 2};
    const bool mine = engine.rank() == root;
    for (const auto count : lengths(engine)) {
      const auto sent = ramp(count, to_int(engine.rank()));
      std::vector<std::vector<float>> all(mine ? static_cast<std::size_t>(engine.ranks()) : 0,
                                          std::vector<float>(count));
      Call gather{.op = Op::gather, .dtype = DType::float32, .root = root, .in = {bytes_of(sent)}};
      for (auto& one : all) {
        gather.out.push_back(writable(one));
      }
      expect_ok(engine.run(gather, soon()));
      for (std::size_t rank = 0; rank < all.size(); ++rank) {
        EXPECT_EQ(all[rank], ramp(count, static_cast<int>(rank)));
      }
      std::vector<float> back(count, -1.0F);
      Call scatter{.op = Op::scatter, .dtype = DType::float32, .root = root, .out = {writable(back)}};
      for (const auto& one : all) {
        scatter.in.push_back(bytes_of(one));
      }
      expect_ok(engine.run(scatter, soon()));
      EXPECT_EQ(back, sent);
    }
  });
}

TEST_P(CollectivesTest, ThousandsInARow) {
  run_engines(GetParam(), 3, [](Engine& engine) {
    for (int i = 0; i < 3001; ++i) {
      std::vector<float> value{static_cast<float>(i + to_int(engine.rank()))};
      expect_ok(engine.run(
          {.op = Op::all_reduce, .dtype = DType::float32, .in = {bytes_of(value)}, .out = {writable(value)}}, soon()));
      ASSERT_EQ(value[0], static_cast<float>(3 * i + 3));
    }
  });
}

TEST_P(CollectivesTest, NobodyPassesABarrierBeforeTheLastHasCome) {
  run_engines(GetParam(), 3, [](Engine& engine) {
    const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
    for (int round = 0; round < 11; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds((to_int(engine.rank()) + round) % 3 * 3));
      std::vector<std::int64_t> times(3);
      const std::vector<std::int64_t> came{now()};
      expect_ok(engine.run({.op = Op::barrier}, soon()));
      const auto passed = now();
      const auto slots = writable(times);
      expect_ok(engine.run({.op = Op::all_gather,
                            .dtype = DType::int64,
                            .in = {bytes_of(came)},
                            .out = {slots.subspan(0, 8), slots.subspan(8, 8), slots.subspan(16, 8)}},
                           soon()));
      EXPECT_GE(passed, *std::max_element(times.begin(), times.end()));
    }
  });
}

TEST_P(CollectivesTest, AMismatchIsAnErrorOnEveryRankAndNothingIsWritten) {
  run_engines(GetParam(), 3, [](Engine& engine) {
    const bool odd_one = engine.rank() == Rank{1};
    const auto before = ramp(1003, to_int(engine.rank()));
    auto values = before;
    const auto attempt = [&](Call call) {
      const auto status = engine.run(call, soon());
      EXPECT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, Code::mismatch);
      EXPECT_EQ(values, before);
      return status.ok() ? std::string() : status.error().message;
    };
    const auto good =
        Call{.op = Op::all_reduce, .dtype = DType::float32, .in = {bytes_of(values)}, .out = {writable(values)}};

    auto other = good;
    other.reduce = odd_one ? ReduceOp::max : ReduceOp::sum;
    EXPECT_THAT(attempt(other), HasSubstr("rank 0 calls all_reduce #"));
    other = good;
    other.dtype = odd_one ? DType::int32 : DType::float32;
    EXPECT_THAT(attempt(other), HasSubstr("rank 1 calls all_reduce #"));
    other = good;
    other.in = {bytes_of(values).first(odd_one ? 8 : 400)};
    other.out = {writable(values).first(odd_one ? 8 : 400)};
    EXPECT_THAT(attempt(other), HasSubstr("(sum, float32, 2 elements)"));
    const auto all_or_one =
        Call{.op = Op::broadcast, .dtype = DType::float32, .root = Rank{1}, .in = {bytes_of(values)}};
    EXPECT_THAT(attempt(odd_one ? all_or_one : good), HasSubstr("broadcast #"));

    // Everybody is still in step.
    expect_ok(engine.run(good, soon()));
    EXPECT_EQ(values, ramp_sum(1003, 3));
  });
}

TEST_P(CollectivesTest, AMismatchSaysWhereTheCallsWereMade) {
  run_engines(GetParam(), 3, [](Engine& engine) {
    Call call{.op = engine.rank() == Rank{2} ? Op::all_gather : Op::barrier};
    std::byte byte{};
    if (call.op == Op::all_gather) {
      call.in = {ConstBlock(&byte, 1)};
      call.out = {Block(&byte, 1), Block(&byte, 1), Block(&byte, 1)};
    }
    call.site = {.file = "train.cpp", .line = static_cast<std::uint32_t>(10 + to_int(engine.rank()))};
    const auto status = engine.run(call, soon());
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().message, HasSubstr("rank 0 calls barrier #"));
    EXPECT_THAT(status.error().message, HasSubstr(" at train.cpp:10, rank 2 calls all_gather #"));
    EXPECT_THAT(status.error().message, HasSubstr(" at train.cpp:12"));
  });
}

TEST_P(CollectivesTest, PremultipliedSumsTakeEveryRanksOwnFactor) {
  on_ranks([](Engine& engine) {
    for (const auto count : lengths(engine)) {
      auto grads = std::vector<float>(count, 1.0F);
      expect_ok(engine.run({.op = Op::all_reduce,
                            .dtype = DType::float32,
                            .reduce = ReduceOp::premul_sum,
                            .in = {bytes_of(grads)},
                            .out = {writable(grads)},
                            .factor = 0.5 + to_int(engine.rank())},
                           soon()));
      const auto n = static_cast<float>(engine.ranks());
      EXPECT_EQ(grads, std::vector<float>(count, n * n / 2));
    }
  });
}

TEST_P(CollectivesTest, EvenBlocksOfOneTensor) {
  on_ranks([](Engine& engine) {
    const auto ranks = static_cast<std::size_t>(engine.ranks());
    const auto me = to_index(engine.rank());
    for (const auto count : lengths(engine)) {
      const auto part = [&](auto bytes, std::size_t rank) {
        return bytes.subspan(rank * count * sizeof(float), count * sizeof(float));
      };
      // Gathered into one tensor whose own part is the input.
      std::vector<float> all(ranks * count, -1.0F);
      const auto mine = ramp(count, to_int(engine.rank()));
      std::copy(mine.begin(), mine.end(), all.begin() + static_cast<std::ptrdiff_t>(me * count));
      Call gather{.op = Op::all_gather, .dtype = DType::float32, .in = {part(bytes_of(all), me)}};
      Call scatter{.op = Op::reduce_scatter, .dtype = DType::float32};
      Call exchange{.op = Op::all_to_all, .dtype = DType::float32};
      std::vector<float> sum(count, -1.0F);
      std::vector<float> exchanged(ranks * count, -1.0F);
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        gather.out.push_back(part(writable(all), rank));
        scatter.in.push_back(part(bytes_of(all), rank));
        exchange.in.push_back(part(bytes_of(all), rank));
        exchange.out.push_back(part(writable(exchanged), rank));
      }
      expect_ok(engine.run(gather, soon()));
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto wanted = ramp(count, static_cast<int>(rank));
        EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), all.begin() + static_cast<std::ptrdiff_t>(rank * count)));
      }
      scatter.out = {writable(sum)};
      expect_ok(engine.run(scatter, soon()));
      auto wanted = ramp(count, to_int(engine.rank()));
      std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                     [&](float value) { return value * static_cast<float>(ranks); });
      EXPECT_EQ(sum, wanted);
      expect_ok(engine.run(exchange, soon()));
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        EXPECT_TRUE(
            std::equal(mine.begin(), mine.end(), exchanged.begin() + static_cast<std::ptrdiff_t>(rank * count)));
      }
    }
  });
}

TEST_P(CollectivesTest, SplitsThatDoNotFitAreAMismatch) {
  run_engines(GetParam(), 2, [](Engine& engine) {
    const std::vector<float> input(10);
    std::vector<float> output(10);
    const auto in = bytes_of(input);
    const auto out = writable(output);
    // Rank 0 sends 3 floats to rank 1, which expects 4.
    const std::size_t sent = 3 * sizeof(float);
    const std::size_t expected = (engine.rank() == Rank{0} ? 3 : 4) * sizeof(float);
    const auto status = engine.run({.op = Op::all_to_all,
                                    .dtype = DType::float32,
                                    .in = {in.first(sent), in.first(sent)},
                                    .out = {out.first(expected), out.subspan(20, sent)}},
                                   soon());
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().message, HasSubstr("rank 0 has 12 bytes for rank 1, which expects 16"));
    // What a rank has for itself is its own mistake, and everybody hears of it.
    const std::size_t own = (engine.rank() == Rank{1} ? 2 : 3) * sizeof(float);
    const auto itself = engine.run({.op = Op::all_to_all,
                                    .dtype = DType::float32,
                                    .in = {in.first(sent), in.first(sent)},
                                    .out = {out.first(sent), out.subspan(20, own)}},
                                   soon());
    ASSERT_FALSE(itself.ok());
    EXPECT_THAT(itself.error().message, testing::StartsWith("rank 1 calls all_to_all #"));
    EXPECT_THAT(itself.error().message, HasSubstr("with 12 bytes for itself where it expects 8"));
  });
}

TEST_P(CollectivesTest, SixtyFourRanks) {
  run_engines(GetParam(), 64, [](Engine& engine) {
    auto grads = ramp(1003, to_int(engine.rank()));
    expect_ok(engine.run(
        {.op = Op::all_reduce, .dtype = DType::float32, .in = {bytes_of(grads)}, .out = {writable(grads)}}, soon()));
    EXPECT_EQ(grads, ramp_sum(1003, 64));
  });
}

TEST(Collectives, OneRanksSumIsNotWrittenAgain) {
  const auto sum_of_one = [](Engine& engine) {
    constexpr std::size_t kBytes = std::size_t{1} << 20;
    auto* const page = static_cast<std::byte*>(
        ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));  // who writes there dies of it
    ASSERT_NE(page, MAP_FAILED);
    expect_ok(engine.run({.op = Op::all_reduce,
                          .dtype = DType::float32,
                          .reduce = ReduceOp::avg,
                          .in = {ConstBlock(page, kBytes)},
                          .out = {Block(page, kBytes)}},
                         soon()));
    ::munmap(page, kBytes);
  };
  run_engines(Kind::threads, 1, sum_of_one);
  run_engines(Kind::processes, 1, sum_of_one);
}

INSTANTIATE_TEST_SUITE_P(Engines, CollectivesTest,
                         testing::Values(Kind::threads, Kind::processes, Kind::processes_symmetric), kind_name);

}  // namespace
}  // namespace tutti::engine
