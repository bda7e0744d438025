#include "tutti/plan/tuning.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

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

}  // namespace
}  // namespace tutti::plan
