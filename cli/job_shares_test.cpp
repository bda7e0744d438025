#include "cli/job_shares.h"

#include <gmock/gmock.h>

namespace tutti::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

RunOptions two_hosts() {
  return {.world_size = 5,
          .hosts = {{"me@a", 2}, {"b", 3}},
          .launch_agent = {"ssh", "-T"},
          .variables = {{"MODE", "fast"}},
          .command = {"p"}};
}

const JobPlace kPlace{.store = "tcp:head:7",
                      .store_host = "head",
                      .port = 7001,
                      .directory = "/work dir",
                      .base = {"HOME=/home/me", "TUTTI_LOG=debug", "TUTTI_SECRET_FD=9", "TUTTI_STORE=unix:outer"}};

TEST(MakeShares, RanksFollowTheOrderOfHosts) {
  const auto shares = make_shares(two_hosts(), kPlace);
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].first, Rank{0});
  EXPECT_EQ(shares[0].count, 2);
  EXPECT_EQ(shares[1].first, Rank{2});
  EXPECT_EQ(shares[1].count, 3);
  EXPECT_EQ(shares[1].world_size, 5);
  EXPECT_EQ(shares[1].directory, "/work dir");
}

TEST(MakeShares, HostsGetWhatIsMeantForThem) {
  const auto variables = make_shares(two_hosts(), kPlace)[1].variables;
  EXPECT_THAT(variables, Contains(Pair("MASTER_ADDR", "a")));
  EXPECT_THAT(variables, Contains(Pair("MASTER_PORT", "7001")));
  EXPECT_THAT(variables, Contains(Pair("MODE", "fast")));
  EXPECT_THAT(variables, Contains(Pair("TUTTI_LOG", "debug")));
  EXPECT_THAT(variables, Not(Contains(Pair("HOME", "/home/me"))));
  EXPECT_THAT(variables, Not(Contains(Pair("TUTTI_SECRET_FD", "9"))));
  EXPECT_EQ(variables.back(),
            (std::pair<std::string, std::string>{"TUTTI_STORE", "tcp:head:7"}));  // the last one counts
}

TEST(MakeShares, OneHostIsOneShare) {
  const auto shares = make_shares({.world_size = 3, .command = {"p"}}, kPlace);
  ASSERT_EQ(shares.size(), 1U);
  EXPECT_EQ(shares[0].count, 3);
  EXPECT_THAT(shares[0].variables, Contains(Pair("MASTER_ADDR", "127.0.0.1")));
  EXPECT_EQ(shares[0].directory, "");
}

TEST(StoreHost, IsAsTold) {
  RunOptions options = two_hosts();
  options.address = "10.9.8.7";
  EXPECT_EQ(store_host(options).value(), "10.9.8.7");
  options = {.hosts = {{"localhost", 2}, {"127.0.0.1", 1}}};
  EXPECT_EQ(store_host(options).value(), "127.0.0.1");
}

TEST(AgentCommand, HasNothingOfTheJob) {
  EXPECT_THAT(agent_command(two_hosts(), {"b", 3}, "/opt/my tools/tutti").value(),
              ElementsAre("ssh", "-T", "b", "'/opt/my tools/tutti'", "host-agent"));
  RunOptions options = two_hosts();
  options.remote_tutti = "/usr/bin/tutti";
  EXPECT_THAT(agent_command(options, {"b", 3}, "/x").value(),
              ElementsAre("ssh", "-T", "b", "/usr/bin/tutti", "host-agent"));
}

TEST(AgentCommand, WithoutAnAgentOnlyThisHostIsReached) {
  RunOptions options = two_hosts();
  options.launch_agent.clear();
  EXPECT_THAT(agent_command(options, {"localhost", 3}, "/x y").value(), ElementsAre("/x y", "host-agent"));
  EXPECT_THAT(agent_command(options, {"b", 3}, "/x").error().message, HasSubstr("'b'"));
}

}  // namespace
}  // namespace tutti::cli
