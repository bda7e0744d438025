#include "tutti/comm/tuned.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/comm/test_complaint.h"
#include "tutti/comm/world.h"
#include "tutti/engine/test_ranks.h"

namespace tutti {
namespace {

using testing::HasSubstr;

plan::Tuned tuned(const std::string& shape, const std::string& choices, plan::Memory memory = plan::Memory::ordinary) {
  return {.machine = this_machine(),
          .shape = shape,
          .op = plan::Op::all_reduce,
          .memory = memory,
          .choices = plan::Choices::parse(choices).value()};
}

class Tuned : public testing::Test {
 protected:
  ~Tuned() override {
    ::unsetenv("TUTTI_TUNING");
    ::unsetenv("TUTTI_ALL_REDUCE");
    std::filesystem::remove(path_);
    std::filesystem::remove(path_ + ".lock");
  }

  const std::string path_ = testing::TempDir() + "tuned-" + std::to_string(::getpid()) + ".json";
};

TEST_F(Tuned, IsWhatTheFileSaysOfThisMachineAndSoManyRanks) {
  auto another = tuned("shm 3", "tree");
  another.machine = "Abacus 3";
  ASSERT_TRUE(plan::add_to_tuning(path_, {tuned("shm 3", "ring/4"), tuned("shm 2", "tree"), another}).ok());
  TuningCache cache(path_);
  const auto part = plan::Tuning::parse(cache.text_for(3)).value();
  ASSERT_EQ(part.all().size(), 1U);
  EXPECT_EQ(part.all()[0].choices.text(), "ring/4");
  EXPECT_EQ(cache.text_for(4), "");
  EXPECT_EQ(cache.text_for(1), "");
  EXPECT_EQ(TuningCache("").text_for(3), "");
  EXPECT_EQ(TuningCache(path_ + ".nowhere").text_for(3), "");
}

TEST_F(Tuned, AFileThatMakesNoSenseIsNotUsed) {
  std::ofstream(path_) << "nonsense";
  EXPECT_EQ(TuningCache(path_, "off").text_for(3), "");
}

TEST_F(Tuned, WhatWasFoundIsChosen) {
  engine::run_threads(2, [&](engine::Engine& engine) {
    plan::Tuning found;
    found.put(tuned("local 2", "ring/4", plan::Memory::symmetric));  // threads reach everything
    choose_ways(engine, found.json(), {});
    // A rank that chose otherwise would be told so.
    auto grads = engine::ramp(1003, to_int(engine.rank()));
    if (engine.rank() == Rank{1}) {
      ASSERT_TRUE(engine.choose(engine::Op::all_reduce, {}).ok());
    }
    const engine::Call call{.op = engine::Op::all_reduce,
                            .dtype = kernels::DType::float32,
                            .in = {engine::bytes_of(grads)},
                            .out = {engine::writable(grads)}};
    EXPECT_EQ(engine.run(call, engine::soon()).error().code, Code::mismatch);
    choose_ways(engine, "", {});
  });
}

/// Ranks' tensors would go around a ring if the variable did not say otherwise: sums come in another order.
TEST_F(Tuned, TheUsersVariableCountsMore) {
  ASSERT_TRUE(plan::add_to_tuning(path_, {tuned("local 3", "ring", plan::Memory::symmetric)}).ok());
  ::setenv("TUTTI_TUNING", path_.c_str(), 1);
  const auto sum = [] {
    float result = 0;
    run_ranks(3, [&](World& world) {
      // Which of them is added last decides what is left of the small ones.
      const auto value = to_int(world.group().rank()) == 0 ? 1e8F : to_int(world.group().rank()) == 1 ? -1e8F : 1.0F;
      const auto tensor = at::full({7}, value);
      world.group().blocking().all_reduce(tensor);
      if (world.group().rank() == Rank{0}) {
        result = tensor[0].item<float>();
      }
      EXPECT_EQ(world.group().shape(), "local 3");
    });
    return result;
  };
  const auto by_ring = sum();
  ::setenv("TUTTI_ALL_REDUCE", "one_shot", 1);
  EXPECT_EQ(sum(), 1.0F);
  ::unsetenv("TUTTI_ALL_REDUCE");
  ::setenv("TUTTI_TUNING", "off", 1);
  EXPECT_EQ(sum(), 1.0F);
  EXPECT_EQ(by_ring, 0.0F);
}

TEST(Choosing, AGroupChoosesForItself) {
  run_ranks(3, [](World& world) {
    const auto& group = world.group();
    for (const auto* choices : {"ring/4", "at_once,1Ki:in_slices/1Ki", "own"}) {
      group.choose("all_reduce", choices);
      const auto tensor = at::arange(1003, at::kFloat);
      group.all_reduce(tensor).wait();
      EXPECT_TRUE(tensor.equal(at::arange(1003, at::kFloat) * 3)) << choices;
    }
    EXPECT_THAT(complaint([&] { group.choose("all_reduce", "rong"); }), HasSubstr("no algorithm 'rong'"));
    EXPECT_THAT(complaint([&] { group.choose("all_induce", "ring"); }), HasSubstr("no operation 'all_induce'"));
    EXPECT_THAT(complaint([&] { group.choose("barrier", "ring"); }), HasSubstr("no plans for barrier"));
    EXPECT_THAT(complaint([&] { group.choose("all_reduce", "library"); }), HasSubstr("these ranks share memory"));
  });
}

}  // namespace
}  // namespace tutti
