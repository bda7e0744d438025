#include "tutti/plan/tuning.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::plan {
namespace {

using testing::HasSubstr;

Tuned tuned(const std::string& shape, const std::string& choices, Op op = Op::all_reduce) {
  return {.machine = "Abacus 3, 7 cores", .shape = shape, .op = op, .choices = Choices::parse(choices).value()};
}

class TuningFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/deeper/tuning.json"; }

  const std::string folder_ = testing::TempDir() + "tuning-" + std::to_string(::getpid());
};

TEST(Tuning, IsFoundByMachineGroupOperationAndMemory) {
  Tuning tuning;
  tuning.put(tuned("shm 3", "ring/4"));
  tuning.put(tuned("shm 3", "tree", Op::broadcast));
  EXPECT_EQ(tuning.find("Abacus 3, 7 cores", "shm 3", Op::all_reduce, Memory::ordinary)->text(), "ring/4");
  EXPECT_EQ(tuning.find("Abacus 3, 7 cores", "shm 3", Op::all_reduce, Memory::symmetric), nullptr);
  EXPECT_EQ(tuning.find("Abacus 3, 7 cores", "shm 2", Op::all_reduce, Memory::ordinary), nullptr);
  EXPECT_EQ(tuning.find("Abacus 4", "shm 3", Op::all_reduce, Memory::ordinary), nullptr);
  tuning.put(tuned("shm 3", "own"));
  EXPECT_EQ(tuning.find("Abacus 3, 7 cores", "shm 3", Op::all_reduce, Memory::ordinary)->text(), "own");
  EXPECT_EQ(tuning.all().size(), 2U);
}

TEST(Tuning, IsWrittenAsItIsRead) {
  Tuning tuning;
  tuning.put(tuned("mpi (Open MPI v5.0.11) 2+2", "at_once,64Ki:in_slices.ring@2/512Ki"));
  tuning.put(tuned("shm 3", "own"));
  EXPECT_EQ(Tuning::parse(tuning.json()).value().json(), tuning.json());
}

TEST(Tuning, APartIsForAsManyRanks) {
  Tuning tuning;
  tuning.put(tuned("mpi (Open MPI v5.0.11) 2+2", "at_once"));
  tuning.put(tuned("shm 4", "ring"));
  tuning.put(tuned("shm 3", "tree"));
  EXPECT_EQ(tuning.part("Abacus 3, 7 cores", 4).all().size(), 2U);
  EXPECT_EQ(tuning.part("Abacus 3, 7 cores", 5).all().size(), 0U);
  EXPECT_EQ(tuning.part("another", 4).all().size(), 0U);
}

TEST(Tuning, WhatMakesNoSenseIsRefused) {
  for (const auto* bad : {"", "[]", "7", "{}", R"({"version":1,"tuned":7})"}) {
    EXPECT_THAT(Tuning::parse(bad).error().message, HasSubstr("a list 'tuned'")) << bad;
  }
  EXPECT_THAT(Tuning::parse(R"({"version":2,"tuned":[]})").error().message, HasSubstr("not of version 1"));
  EXPECT_THAT(Tuning::parse(R"({"version":1,"tuned":[7]})").error().message, HasSubstr("entry 1"));
  EXPECT_THAT(Tuning::parse(R"({"version":1,"tuned":[{"machine":"a","group":"shm 2","operation":"all_reduce",
                              "memory":"private","choices":"rong"}]})")
                  .error()
                  .message,
              HasSubstr("no algorithm 'rong'"));
  for (const auto* sizes : {"7", "[7]", "[8,7]", "[-1,7]", "[1.5,7]"}) {
    EXPECT_THAT(Tuning::parse(fmt::format(R"({{"version":1,"tuned":[{{"machine":"a","group":"shm 2",
        "operation":"all_reduce","memory":"private","choices":"own","timed":{}}}]}})",
                                          sizes))
                    .error()
                    .message,
                HasSubstr("'timed'"))
        << sizes;
  }
}

Tuned timed(const std::string& choices, std::size_t smallest, std::size_t largest) {
  auto some = tuned("shm 3", choices);
  some.timed = {smallest, largest};
  return some;
}

TEST(Tuning, WhatWasFoundWellBeyondTheSizesTimedNowStays) {
  const auto found = [](const Tuned& before, const Tuned& now) {
    Tuning tuning;
    tuning.put(before);
    tuning.add(now);
    EXPECT_EQ(tuning.all().size(), 1U);
    const auto again = Tuning::parse(tuning.json()).value();
    EXPECT_EQ(again.json(), tuning.json());
    return again.all()[0];
  };
  constexpr std::size_t kMi = 1 << 20;
  const auto before = timed("own,1Mi:ring/4", 8, 25 * kMi);
  EXPECT_EQ(found(before, timed("at_once", 8, 8)).choices.text(), "at_once,16:own,1Mi:ring/4");
  EXPECT_EQ(found(before, timed("at_once", 4096, 4096)).choices.text(), "own,2Ki:at_once,8Ki:own,1Mi:ring/4");
  EXPECT_EQ(found(before, timed("tree,4Mi:direct", kMi, 25 * kMi)).choices.text(), "own,512Ki:tree,4Mi:direct");
  // The same sizes once more, and more of them: nothing of the old is left, not either where it was only supposed.
  EXPECT_EQ(found(before, timed("tree", 8, 25 * kMi)).choices.text(), "tree");
  EXPECT_EQ(found(before, timed("own", 4, 50 * kMi)).choices.text(), "own");
  // Between both nothing had been timed.
  EXPECT_EQ(found(timed("at_once", 8, 64), timed("direct", kMi, 25 * kMi)).choices.text(), "at_once,128:direct");
  EXPECT_EQ(found(timed("direct", kMi, 25 * kMi), timed("at_once", 8, 64)).choices.text(), "at_once,512Ki:direct");
  // What does not say counts as timed for all sizes.
  EXPECT_EQ(found(tuned("shm 3", "ring,1Mi:tree"), timed("own", 64, 64)).choices.text(),
            "ring,32:own,128:ring,1Mi:tree");
  const auto both = found(timed("own,1Mi:ring/4", 4096, kMi), timed("at_once", 8, 64)).timed;
  EXPECT_EQ(both.smallest, 8U);
  EXPECT_EQ(both.largest, kMi);
}

TEST(Tuning, AMachineIsNamedByWhatItHas) {
  Topology topology{.model = "Abacus 3", .machine_cores = 7, .packages = 1, .cores = {}, .caches = {}, .nodes = {}};
  topology.nodes.resize(2);
  EXPECT_EQ(machine_name(topology), "Abacus 3, 7 cores, 2 nodes");
  topology.caches = {{.level = 1, .bytes = 32 << 10, .cpus = {0}}, {.level = 3, .bytes = 6 << 20, .cpus = {0}}};
  EXPECT_EQ(machine_name(topology), "Abacus 3, 7 cores, 2 nodes, L3 6144 KiB");
}

TEST_F(TuningFile, OneThatIsNotThereHasNothingInIt) { EXPECT_TRUE(read_tuning(path()).value().all().empty()); }

TEST_F(TuningFile, IsMadeWithItsFolderAndAddedTo) {
  ASSERT_TRUE(add_to_tuning(path(), {tuned("shm 3", "ring")}).ok());
  ASSERT_TRUE(add_to_tuning(path(), {tuned("shm 3", "tree"), tuned("shm 4", "ring")}).ok());
  const auto tuning = read_tuning(path()).value();
  EXPECT_EQ(tuning.all().size(), 2U);
  EXPECT_EQ(tuning.find("Abacus 3, 7 cores", "shm 3", Op::all_reduce, Memory::ordinary)->text(), "tree");
}

TEST_F(TuningFile, NothingIsLostWhereSeveralWriteAtOnce) {
  std::vector<std::jthread> writers;
  for (int i = 2; i < 12; ++i) {
    writers.emplace_back([&, i] {
      EXPECT_TRUE(add_to_tuning(path(), {tuned("shm " + std::to_string(i), "ring")}).ok());
      EXPECT_TRUE(read_tuning(path()).ok());
    });
  }
  writers.clear();
  EXPECT_EQ(read_tuning(path()).value().all().size(), 10U);
}

TEST_F(TuningFile, OneThatMakesNoSenseIsNamedAndLeftAlone) {
  std::filesystem::create_directories(folder_ + "/deeper");
  std::ofstream(path()) << "nonsense";
  EXPECT_THAT(read_tuning(path()).error().message, HasSubstr(path()));
  EXPECT_FALSE(add_to_tuning(path(), {tuned("shm 3", "ring")}).ok());
  std::string text;
  std::ifstream(path()) >> text;
  EXPECT_EQ(text, "nonsense");
}

TEST_F(TuningFile, WhereNothingCanBeWrittenSaysSo) {
  EXPECT_THAT(add_to_tuning("/proc/nowhere/tuning.json", {tuned("shm 3", "ring")}).error().message,
              HasSubstr("cannot make the folder"));
}

TEST_F(TuningFile, WhetherItCanBeAddedToIsKnownBefore) {
  EXPECT_TRUE(can_add_to_tuning(path()).ok());
  EXPECT_FALSE(std::filesystem::exists(path()));
  ASSERT_TRUE(add_to_tuning(path(), {tuned("shm 3", "ring")}).ok());
  EXPECT_TRUE(can_add_to_tuning(path()).ok());
  EXPECT_EQ(read_tuning(path()).value().all().size(), 1U);
  for (const auto* nonsense : {"", "nonsense"}) {
    std::ofstream(path()) << nonsense;
    EXPECT_THAT(can_add_to_tuning(path()).error().message, HasSubstr(path()));
  }
  EXPECT_THAT(can_add_to_tuning(folder_).error().message, HasSubstr("it is a folder"));
  EXPECT_THAT(can_add_to_tuning("/dev/zero").error().message, HasSubstr("it is no file"));
  EXPECT_THAT(can_add_to_tuning("/proc/nowhere/tuning.json").error().message, HasSubstr("cannot make the folder"));
}

}  // namespace
}  // namespace tutti::plan
