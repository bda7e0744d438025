// Ranks behind agents, all on this host: what needs no network of its own.
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include <gmock/gmock.h>

#include "tests/multiprocess/launched_tool.h"
#include "tests/multiprocess/process_scan.h"

namespace tutti::tests {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LauncherHosts : public LauncherTest {
 protected:
  /// Two agents on this host.
  static Words two_hosts() { return {"--hosts", "localhost:2,127.0.0.1:3", "--launch-agent", ""}; }

  /// A stand-in for ssh: a script that finds the host in $1 and the command behind it.
  Words two_hosts_by(const std::string& script) {
    const std::string path = folder() + "/agent.sh";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    ::chmod(path.c_str(), 0755);
    return {"--hosts", "alpha:2,beta:3", "--address", "127.0.0.1", "--launch-agent", path + " -extra"};
  }

  /// Processes of the job whose command line holds this.
  std::vector<pid_t> running(const std::string& part) const {
    std::vector<pid_t> found;
    for (const pid_t pid : job_processes()) {
      if (file_text("/proc/" + std::to_string(pid) + "/cmdline").find(part) != std::string::npos) {
        found.push_back(pid);
      }
    }
    return found;
  }
};

TEST_F(LauncherHosts, RanksMeetOverTls) {
  const Outcome outcome =
      run(two_hosts(), {"join", "barrier=all", "say=met", "env=LOCAL_RANK", "env=LOCAL_WORLD_SIZE", "env=TUTTI_STORE"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* line : {"[0] met\n", "[4] met\n", "[1] LOCAL_RANK=1\n", "[1] LOCAL_WORLD_SIZE=2\n",
                           "[4] LOCAL_RANK=2\n", "[4] LOCAL_WORLD_SIZE=3\n", "TUTTI_STORE=tcp:127.0.0.1:"}) {
    EXPECT_THAT(outcome.out, HasSubstr(line));
  }
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST_F(LauncherHosts, TheAgentIsCalledAsSshWouldBe) {
  // What a login shell prints before the agent speaks is no harm.
  const auto options =
      two_hosts_by("[ \"$1\" = -extra ] || exit 9\nshift 2\necho 'Welcome!'\necho 'last login' >&2\nexec \"$@\"");
  const Outcome outcome = run(options, {"join", "barrier=all", "say=met"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("[4] met\n"));
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST_F(LauncherHosts, AHostThatCannotBeReached) {
  const auto options =
      two_hosts_by("if [ $2 = beta ]; then echo 'no route to beta' >&2; exit 255; fi\nshift 2\nexec \"$@\"");
  const Outcome outcome = run(options, {"join", "barrier=all"});
  EXPECT_EQ(outcome.code, 255);
  EXPECT_THAT(outcome.err, HasSubstr("tutti run: host beta: "));
  EXPECT_THAT(outcome.err, HasSubstr("exited with code 255 before any rank began\n  | no route to beta\n"));
}

TEST_F(LauncherHosts, ALaunchAgentThatIsNotThere) {
  const Outcome outcome =
      run({"--hosts", "alpha:2", "--address", "127.0.0.1", "--launch-agent", "./no-ssh"}, {"say=x"});
  EXPECT_EQ(outcome.code, 127);
  EXPECT_THAT(outcome.err, HasSubstr("cannot start './no-ssh'"));
}

TEST_F(LauncherHosts, AnotherVersionIsRefusedByName) {
  const auto options = two_hosts_by("printf '\\001tutti-host-agent 9.9.9\\n'; cat > /dev/null");
  const Outcome outcome = run(options, {"say=x"});
  EXPECT_EQ(outcome.code, 255);
  EXPECT_THAT(outcome.err, HasSubstr("has tutti 9.9.9, this host has"));
}

TEST_F(LauncherHosts, GarbageIsRefused) {
  const auto options = two_hosts_by("cat /dev/zero");
  const Outcome outcome = run(options, {"say=x"});
  EXPECT_EQ(outcome.code, 255);
  EXPECT_THAT(outcome.err, HasSubstr("makes no sense"));
}

TEST_F(LauncherHosts, AProgramThatIsNotThere) {
  Words arguments{"run"};
  const Words hosts = two_hosts();
  arguments.insert(arguments.end(), hosts.begin(), hosts.end());
  arguments.insert(arguments.end(), {"--", "./nope"});
  const Outcome outcome = start({.arguments = arguments})->wait();
  EXPECT_EQ(outcome.code, 127);
  EXPECT_THAT(outcome.err, HasSubstr("cannot start './nope': No such file or directory\n"));
}

TEST_F(LauncherHosts, ADeadRankIsNamedWithItsHost) {
  const Outcome outcome = run(two_hosts(), {"join", "barrier=x", "3:err=the cause", "3:raise=11", "sleep=60"});
  EXPECT_EQ(outcome.code, 139);
  EXPECT_THAT(outcome.err, ContainsRegex("tutti run: rank 3 \\(pid [0-9]+ on 127.0.0.1\\) was killed by SIGSEGV"));
  EXPECT_THAT(outcome.err, HasSubstr("  | the cause\n"));
}

TEST_F(LauncherHosts, GraceIsGivenThereToo) {
  const Outcome outcome = run({"--hosts", "localhost:2,127.0.0.1:1", "--launch-agent", "", "--grace", "0.4"},
                              {"1:exit=3", "ignore=15", "daemon", "sleep=60"});
  EXPECT_EQ(outcome.code, 3);
}

TEST_F(LauncherHosts, CtrlCOnceAndTwice) {
  for (const bool twice : {false, true}) {
    Words options = two_hosts();
    options.insert(options.end(), {"--grace", "40"});
    const auto tool = start(options, {twice ? "ignore=2" : "say=heeds", "ignore=15", "say=ready", "sleep=60"});
    ASSERT_TRUE(tool->saw("ready", 5));
    tool->signal(SIGINT);
    ASSERT_TRUE(tool->saw("press Ctrl-C again"));
    if (twice) {
      tool->signal(SIGINT);
    }
    EXPECT_EQ(tool->wait().code, 130);
  }
}

TEST_F(LauncherHosts, LauncherOrSupervisorKilled) {
  for (const bool front : {true, false}) {
    const auto tool =
        start(two_hosts(), {"ignore=15", "ignore=1", "daemon", "join", "barrier=x", "say=ready", "sleep=60"});
    ASSERT_TRUE(tool->saw("ready", 5));
    ::kill(front ? tool->pid() : supervisor_of(*tool), SIGKILL);
    expect_all_gone();
    const Outcome outcome = tool->wait();
    EXPECT_EQ(front ? outcome.signal : outcome.code - 128, SIGKILL);
  }
}

TEST_F(LauncherHosts, AnAgentKilled) {
  // Its front, or the process behind it: the ranks of that host are lost either way, and nothing of them stays.
  for (const bool front : {true, false}) {
    Words options = two_hosts();
    options.insert(options.end(), {"--grace", "0.3"});
    const auto tool = start(options, {"ignore=15", "daemon", "join", "barrier=x", "say=ready", "sleep=60"});
    ASSERT_TRUE(tool->saw("ready", 5));
    const pid_t supervisor = supervisor_of(*tool);
    pid_t victim = 0;
    for (const pid_t pid : running("host-agent")) {
      if ((parent_of(pid) == supervisor) == front) {
        victim = pid;
      }
    }
    ASSERT_GT(victim, 0);
    ::kill(victim, SIGKILL);
    const Outcome outcome = tool->wait();
    EXPECT_EQ(outcome.code, 255) << outcome.err;
    EXPECT_THAT(outcome.err, ContainsRegex("tutti run: host (localhost|127.0.0.1): .* before its ranks ended"));
  }
}

TEST_F(LauncherHosts, AllOutputComesThrough) {
  const std::string logs = folder() + "/logs";
  const Outcome outcome = run({"--hosts", "localhost:1,127.0.0.1:1", "--launch-agent", "", "--log-dir", logs},
                              {"print=20000000", "say-unfinished=end"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* rank : {"0", "1"}) {
    const std::string text = file_text(logs + "/rank-" + rank + ".out");
    EXPECT_GE(text.size(), 20'000'000U);
    EXPECT_THAT(text.substr(text.size() - 20), ::testing::EndsWith("/end\nend"));
    EXPECT_THAT(outcome.out, HasSubstr(std::string("[") + rank + "] end\n"));
  }
  EXPECT_GE(outcome.out.size(), 40'000'000U);
}

}  // namespace
}  // namespace tutti::tests
