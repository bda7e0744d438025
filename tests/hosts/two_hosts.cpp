#include "tests/hosts/two_hosts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include <fmt/format.h>

namespace tutti::tests {
namespace {

constexpr const char* kFirstAddress = "10.231.77.1";
constexpr const char* kSecondAddress = "10.231.77.2";

bool shell(const std::string& command) { return std::system((command + " 2>/dev/null").c_str()) == 0; }

}  // namespace

void TwoHostsTest::SetUp() {
  LauncherTest::SetUp();
  if (::geteuid() != 0) {
    GTEST_SKIP() << "making network namespaces needs root";
  }
  const std::string alpha = fmt::format("tutti-{}-alpha", ::getpid());
  const std::string beta = fmt::format("tutti-{}-beta", ::getpid());
  if (!shell("ip netns add " + alpha)) {
    GTEST_SKIP() << "network namespaces cannot be made here";
  }
  alpha_ = alpha;
  ASSERT_TRUE(shell("ip netns add " + beta));
  beta_ = beta;
  ASSERT_TRUE(shell(fmt::format("ip link add cable netns {} type veth peer name cable netns {}", alpha_, beta_)));
  for (const auto& [host, address] : {std::pair{alpha_, kFirstAddress}, std::pair{beta_, kSecondAddress}}) {
    ASSERT_TRUE(shell(fmt::format("ip -n {} addr add {}/24 dev cable", host, address)));
    ASSERT_TRUE(shell(fmt::format("ip -n {} link set cable up", host)));
    ASSERT_TRUE(shell(fmt::format("ip -n {} link set lo up", host)));
  }
  const std::string agent = folder() + "/agent.sh";
  std::ofstream(agent) << fmt::format("#!/bin/sh\nhost=tutti-{}-$1\nshift\nexec ip netns exec $host \"$@\"\n",
                                      ::getpid());
  ASSERT_EQ(::chmod(agent.c_str(), 0755), 0);
}

void TwoHostsTest::TearDown() {
  LauncherTest::TearDown();
  for (const std::string& host : {alpha_, beta_}) {
    if (!host.empty()) {
      EXPECT_TRUE(shell("ip netns del " + host));
    }
  }
}

std::unique_ptr<LaunchedTool> TwoHostsTest::start_on_hosts(const Words& options, const Words& verbs) {
  Words arguments{"run",         "--hosts",        "alpha:2,beta:3",      "--address",
                  kFirstAddress, "--launch-agent", folder() + "/agent.sh"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", rank_program_path()});
  arguments.insert(arguments.end(), verbs.begin(), verbs.end());
  return start({.arguments = std::move(arguments), .wrapper = {"ip", "netns", "exec", alpha_}});
}

}  // namespace tutti::tests
