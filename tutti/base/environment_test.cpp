#include "tutti/base/environment.h"

#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Result<Environment> read(const Variables& variables) {
  return read_environment([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

Environment good(const Variables& variables) {
  const auto environment = read(variables);
  EXPECT_TRUE(environment.ok()) << environment.error().message;
  return environment.value();
}

std::string complaint(const Variables& variables) {
  const auto environment = read(variables);
  return environment.ok() ? "no complaint" : environment.error().message;
}

TEST(Environment, AloneIsAWorldOfOne) {
  const auto environment = good({});
  EXPECT_EQ(environment.launcher, Launcher::none);
  EXPECT_EQ(environment.place.rank, Rank{0});
  EXPECT_EQ(environment.place.world_size, 1);
}

TEST(Environment, KnowsEveryLauncher) {
  struct Case {
    Launcher launcher;
    Variables variables;
  };
  const std::vector<Case> cases{
      {Launcher::torchrun, {{"RANK", "3"}, {"WORLD_SIZE", "5"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "3"}}},
      {Launcher::open_mpi,
       {{"OMPI_COMM_WORLD_RANK", "3"},
        {"OMPI_COMM_WORLD_SIZE", "5"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
        {"PMIX_NAMESPACE", "prterun-host-17@1"}}},
      {Launcher::pmi, {{"PMI_RANK", "3"}, {"PMI_SIZE", "5"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "3"}}},
      {Launcher::slurm,
       {{"SLURM_PROCID", "3"},
        {"SLURM_STEP_NUM_TASKS", "5"},
        {"SLURM_LOCALID", "1"},
        {"SLURM_STEP_TASKS_PER_NODE", "3(x1),2"},
        {"SLURM_JOB_ID", "77"}}},
  };
  for (const auto& [launcher, variables] : cases) {
    const auto environment = good(variables);
    EXPECT_EQ(environment.launcher, launcher);
    EXPECT_EQ(environment.place.rank, Rank{3}) << to_string(launcher);
    EXPECT_EQ(environment.place.world_size, 5) << to_string(launcher);
    EXPECT_EQ(environment.place.local_rank, 1) << to_string(launcher);
    EXPECT_EQ(environment.place.local_world_size, 3) << to_string(launcher);
    EXPECT_EQ(environment.rank_variable,
              variables.begin()->first.starts_with("LOCAL") ? "RANK" : environment.rank_variable);
  }
}

TEST(Environment, TheInnerLauncherCounts) {
  const auto environment =
      good({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}});
  EXPECT_EQ(environment.launcher, Launcher::torchrun);
  EXPECT_EQ(environment.place.world_size, 2);
}

TEST(Environment, ABatchScriptIsNoRank) {
  EXPECT_EQ(good({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).launcher, Launcher::none);
}

/// A rank under srun that is the first of its node, in a world of 7.
Variables under_srun(const std::string& tasks_per_node, const std::string& node) {
  return {{"SLURM_PROCID", "3"},
          {"SLURM_STEP_NUM_TASKS", "7"},
          {"SLURM_LOCALID", "0"},
          {"SLURM_STEP_TASKS_PER_NODE", tasks_per_node},
          {"SLURM_NODEID", node}};
}

TEST(Environment, SlurmNodesMayHaveUnevenRanks) {
  const std::map<std::string, std::vector<int>> cases{
      {"3", {3}},
      {"1,2", {1, 2}},
      {"2,1", {2, 1}},
      {"2(x1)", {2}},
      {"2(x2),1", {2, 2, 1}},
      {"1,2(x3)", {1, 2, 2, 2}},
      {"3,1(x2),2", {3, 1, 1, 2}},
  };
  for (const auto& [list, nodes] : cases) {
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      EXPECT_EQ(good(under_srun(list, std::to_string(node))).place.local_world_size, nodes[node])
          << list << ", node " << node;
    }
    EXPECT_THAT(complaint(under_srun(list, std::to_string(nodes.size()))),
                HasSubstr("SLURM_STEP_TASKS_PER_NODE=" + list));
  }
}

TEST(Environment, TheLastLocalRankOfALargerNodeHasAPlace) {
  auto variables = under_srun("1,2", "1");
  variables["SLURM_LOCALID"] = "1";
  EXPECT_EQ(good(variables).place.local_rank, 1);
}

TEST(Environment, WithoutItsNodeTheFirstEntryCounts) {
  auto variables = under_srun("2(x2),1", "");
  variables.erase("SLURM_NODEID");
  EXPECT_EQ(good(variables).place.local_world_size, 2);
}

TEST(Environment, NamesASlurmListThatMakesNoSense) {
  const std::vector<std::string> lists{"",
                                       "a",
                                       ",",
                                       "2,",
                                       ",2",
                                       "2 ,1",
                                       "0",
                                       "-2",
                                       "2,0",
                                       "2(",
                                       "2(x",
                                       "2(x)",
                                       "2(x2",
                                       "2(x0)",
                                       "2(x-1)",
                                       "2(x2)1",
                                       "2(y2)",
                                       "(x2)",
                                       "2,1)",
                                       "2(x999999999999)",
                                       "2(x99999999999999999999999)",
                                       "999999999999"};
  for (const auto& list : lists) {
    EXPECT_THAT(complaint(under_srun(list, "0")), HasSubstr("SLURM_STEP_TASKS_PER_NODE=" + list + ": must be"));
  }
  EXPECT_THAT(complaint(under_srun("2,1", "x")), HasSubstr("SLURM_NODEID=x"));
  EXPECT_THAT(complaint(under_srun("2,1", "-1")), HasSubstr("SLURM_NODEID=-1"));
}

TEST(Environment, PmiVariablesOfSrunLeaveThePlaceToSlurm) {
  auto variables = under_srun("2(x3),1", "3");
  variables.insert({{"PMI_RANK", "3"}, {"PMI_SIZE", "7"}, {"PMI_JOBID", "2.0"}});
  const auto environment = good(variables);
  EXPECT_EQ(environment.launcher, Launcher::slurm);
  EXPECT_EQ(environment.rank_variable, "SLURM_PROCID");
  EXPECT_EQ(environment.place.rank, Rank{3});
  EXPECT_EQ(environment.place.world_size, 7);
  EXPECT_EQ(environment.place.local_world_size, 1);
}

TEST(Environment, MpiexecInsideSrunIsSeen) {
  auto same_numbers = under_srun("1(x7)", "3");
  same_numbers.insert({{"PMI_RANK", "3"}, {"PMI_SIZE", "7"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}});
  EXPECT_EQ(good(same_numbers).launcher, Launcher::pmi);

  auto other_rank = under_srun("1(x7)", "3");
  other_rank.insert({{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}});
  EXPECT_EQ(good(other_rank).launcher, Launcher::pmi);

  auto other_size = under_srun("1(x7)", "3");
  other_size.insert({{"PMI_RANK", "3"}, {"PMI_SIZE", "9"}});
  EXPECT_EQ(good(other_size).launcher, Launcher::pmi);
}

TEST(Environment, PmiVariablesInABatchScriptAreMpiexecs) {
  const auto environment = good({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "3"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "3"}});
  EXPECT_EQ(environment.launcher, Launcher::pmi);
}

TEST(Environment, RankAndSizeAloneMeanOneHost) {
  const auto environment = good({{"RANK", "2"}, {"WORLD_SIZE", "3"}});
  EXPECT_EQ(environment.place.local_rank, 2);
  EXPECT_EQ(environment.place.local_world_size, 3);
}

TEST(Environment, OwnVariables) {
  const auto environment = good({{"RANK", "0"},
                                 {"WORLD_SIZE", "1"},
                                 {"TUTTI_STORE", "unix:x"},
                                 {"TUTTI_SECRET_FD", "7"},
                                 {"TUTTI_TIMEOUT", "0.5"},
                                 {"TUTTI_LOG", "debug"},
                                 {"TUTTI_ALL_REDUCE", "ring/4"},
                                 {"TUTTI_GATHER", ""},
                                 {"MASTER_ADDR", "10.0.0.1"},
                                 {"MASTER_PORT", "29500"}});
  EXPECT_EQ(environment.launcher, Launcher::tutti);
  EXPECT_EQ(environment.secret_fd, 7);
  EXPECT_EQ(environment.timeout, std::chrono::milliseconds(500));
  EXPECT_EQ(environment.log_level, "debug");
  EXPECT_EQ(environment.preferences.plans, (std::map<std::string, std::string>{{"all_reduce", "ring/4"}}));
  EXPECT_EQ(environment.master_port, 29500);
}

TEST(Environment, TuningIsInTheUsersCache) {
  const auto file = [](const Variables& variables) { return good(variables).preferences.tuning; };
  EXPECT_EQ(file({}), "");
  EXPECT_EQ(file({{"HOME", "/home/ada"}}), "/home/ada/.cache/tutti/tuning.json");
  EXPECT_EQ(file({{"HOME", "/home/ada"}, {"XDG_CACHE_HOME", "/var/ada"}}), "/var/ada/tutti/tuning.json");
  EXPECT_EQ(file({{"HOME", "/home/ada"}, {"XDG_CACHE_HOME", "relative"}}), "/home/ada/.cache/tutti/tuning.json");
  EXPECT_EQ(file({{"HOME", "/home/ada"}, {"TUTTI_TUNING", "here.json"}}), "here.json");
  EXPECT_EQ(file({{"HOME", "/home/ada"}, {"TUTTI_TUNING", "off"}}), "");
}

TEST(Environment, RestartsAreDifferentJobs) {
  const Variables first{
      {"RANK", "0"}, {"WORLD_SIZE", "1"}, {"TORCHELASTIC_RUN_ID", "j"}, {"TORCHELASTIC_RESTART_COUNT", "0"}};
  auto second = first;
  second["TORCHELASTIC_RESTART_COUNT"] = "1";
  EXPECT_NE(good(first).job, good(second).job);
}

TEST(Environment, NamesTheVariableThatMakesNoSense) {
  EXPECT_THAT(complaint({{"RANK", "x"}, {"WORLD_SIZE", "2"}}), HasSubstr("RANK=x"));
  EXPECT_THAT(complaint({{"RANK", "1"}}), HasSubstr("WORLD_SIZE is not"));
  EXPECT_THAT(complaint({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), HasSubstr("numbered from 0 to 1"));
  EXPECT_THAT(complaint({{"RANK", "0"}, {"WORLD_SIZE", "0"}}), HasSubstr("WORLD_SIZE=0"));
  EXPECT_THAT(complaint({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "3"}}), HasSubstr("LOCAL_RANK=3"));
  EXPECT_THAT(complaint({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "3"}}), HasSubstr("more ranks"));
  EXPECT_THAT(complaint({{"MASTER_PORT", "70000"}}), HasSubstr("MASTER_PORT=70000"));
  EXPECT_THAT(complaint({{"TUTTI_TIMEOUT", "soon"}}), HasSubstr("TUTTI_TIMEOUT=soon"));
  EXPECT_THAT(complaint({{"TUTTI_TIMEOUT", "0"}}), HasSubstr("above 0"));
  EXPECT_THAT(complaint({{"TUTTI_LOG", "loud"}}), HasSubstr("TUTTI_LOG=loud"));
  EXPECT_THAT(complaint({{"TUTTI_SECRET_FD", "-1"}}), HasSubstr("TUTTI_SECRET_FD=-1"));
}

}  // namespace
}  // namespace tutti
