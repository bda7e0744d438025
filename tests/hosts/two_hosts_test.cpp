#include "tests/hosts/two_hosts.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/multiprocess/process_scan.h"

namespace tutti::tests {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class TwoHosts : public TwoHostsTest {};

/// The secret of a running job, from the descriptor of one of its ranks.
std::string secret_of(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    if (file_text(fmt::format("/proc/{}/cmdline", pid)).find("rank_program") == 0 ||
        file_text(fmt::format("/proc/{}/comm", pid)) == "rank_program\n") {
      return file_text(fmt::format("/proc/{}/fd/42", pid)).substr(0, 32);
    }
  }
  return {};
}

std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

TEST_F(TwoHosts, RanksMeetAcrossTheCable) {
  const Outcome outcome = start_on_hosts({}, {"join", "barrier=all", "network", "say=met"})->wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  std::map<char, std::string> network_of;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("network") != std::string::npos) {
      network_of[line[1]] = line.substr(4);
    }
  }
  ASSERT_EQ(network_of.size(), 5U) << outcome.out;
  EXPECT_EQ(network_of['0'], network_of['1']);
  EXPECT_EQ(network_of['2'], network_of['3']);
  EXPECT_EQ(network_of['2'], network_of['4']);
  EXPECT_NE(network_of['0'], network_of['2']);
}

TEST_F(TwoHosts, TheSecretIsNowhereToBeSeen) {
  const std::string logs = folder() + "/logs";
  const auto tool =
      start_on_hosts({"--log-dir", logs, "--env", "TUTTI_LOG=trace"}, {"join", "barrier=all", "say=ready", "sleep=60"});
  ASSERT_TRUE(tool->saw("ready", 5));
  const std::string secret = secret_of(job_processes());
  ASSERT_EQ(secret.size(), 32U);
  const std::array<std::string, 2> forms{secret, hexadecimal(secret)};
  const auto expect_clean = [&](const std::string& text, const std::string& where) {
    for (const std::string& form : forms) {
      EXPECT_EQ(text.find(form), std::string::npos) << where;
    }
  };
  for (const pid_t pid : all_processes()) {
    expect_clean(file_text(fmt::format("/proc/{}/cmdline", pid)), "a command line");
    expect_clean(file_text(fmt::format("/proc/{}/environ", pid)), "an environment");
  }
  tool->signal(SIGTERM);
  const Outcome outcome = tool->wait();
  EXPECT_EQ(outcome.code, 143);
  expect_clean(outcome.out, "standard output");
  expect_clean(outcome.err, "standard error");
  for (const auto& entry : std::filesystem::directory_iterator(logs)) {
    expect_clean(file_text(entry.path().string()), entry.path().string());
  }
}

TEST_F(TwoHosts, TwoJobsHaveTwoSecrets) {
  std::set<std::string> secrets;
  for (int i = 0; i < 2; ++i) {
    const auto tool = start_on_hosts({}, {"say=ready", "sleep=60"});
    ASSERT_TRUE(tool->saw("ready", 5));
    secrets.insert(secret_of(job_processes()));
    tool->signal(SIGTERM);
    tool->wait();
  }
  EXPECT_EQ(secrets.size(), 2U);
}

TEST_F(TwoHosts, RanksDoNotOutliveTheLauncher) {
  const auto tool =
      start_on_hosts({}, {"ignore=15", "ignore=1", "daemon", "join", "barrier=all", "say=ready", "sleep=60"});
  ASSERT_TRUE(tool->saw("ready", 5));
  tool->signal(SIGKILL);
  expect_all_gone();
  EXPECT_EQ(tool->wait().signal, SIGKILL);
}

TEST_F(TwoHosts, ADeathOnOneHostIsNamedAndEndsTheOther) {
  const Outcome outcome = start_on_hosts({}, {"join", "barrier=all", "4:raise=9", "barrier=never"})->wait();
  EXPECT_EQ(outcome.code, 137);
  EXPECT_THAT(outcome.err, ContainsRegex("tutti run: rank 4 \\(pid [0-9]+ on beta\\) was killed by SIGKILL"));
}

}  // namespace
}  // namespace tutti::tests
