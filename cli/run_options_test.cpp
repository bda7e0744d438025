#include "cli/run_options.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>

#include "cli/system_facts.h"

namespace tutti::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

std::pair<Words, Words> split(const Words& words) {
  CLI::App app;
  RunArguments arguments;
  declare_run_options(app, arguments);
  return split_program(app, words);
}

Result<RunOptions> parsed(const Words& words) {
  CLI::App app;
  RunArguments arguments;
  declare_run_options(app, arguments);
  auto [options, program] = split_program(app, words);
  app.parse(Words(options.rbegin(), options.rend()));
  return check_run_arguments(arguments, program);
}

TEST(SplitProgram, FindsTheProgram) {
  EXPECT_THAT(split({"-n", "2", "--", "p", "-n", "7"}).second, ElementsAre("p", "-n", "7"));
  EXPECT_THAT(split({"-n", "2", "p", "--quiet"}).second, ElementsAre("p", "--quiet"));
  EXPECT_THAT(split({"-n2", "--grace=3", "--quiet", "p"}).second, ElementsAre("p"));
  EXPECT_THAT(split({"p", "--", "x"}).second, ElementsAre("p", "--", "x"));
  EXPECT_THAT(split({"--", "--", "x"}).second, ElementsAre("--", "x"));
  EXPECT_THAT(split({"--env", "A=b", "--env", "C=d", "p"}).first, ElementsAre("--env", "A=b", "--env", "C=d"));
}

TEST(SplitProgram, BindTakesAValueOnlyWhenItIsOne) {
  EXPECT_THAT(split({"--bind", "p"}).first, ElementsAre("--bind=core"));
  EXPECT_THAT(split({"--bind", "p"}).second, ElementsAre("p"));
  EXPECT_THAT(split({"--bind=numa", "p"}).first, ElementsAre("--bind=numa"));
  EXPECT_THAT(split({"--bind", "numa", "p"}).first, ElementsAre("--bind=numa"));
  EXPECT_THAT(split({"--bind", "numa", "p"}).second, ElementsAre("p"));
}

TEST(RunOptions, MeanWhatWasTyped) {
  const auto options =
      parsed({"-n", "5", "--env", "A=b=c", "--env=D=", "--grace", "0.5", "--bind=numa", "--", "p", "x"});
  ASSERT_TRUE(options.ok()) << options.error().message;
  EXPECT_EQ(options.value().world_size, 5);
  EXPECT_EQ(options.value().bind, plan::Bind::numa);
  EXPECT_THAT(options.value().variables, ElementsAre(std::pair<std::string, std::string>{"A", "b=c"},
                                                     std::pair<std::string, std::string>{"D", ""}));
  EXPECT_DOUBLE_EQ(options.value().supervisor.grace.count(), 0.5);
  EXPECT_FALSE(options.value().supervisor.timeout.has_value());
  EXPECT_THAT(options.value().command, ElementsAre("p", "x"));
}

TEST(RunOptions, OneRankPerCoreByDefault) {
  const auto topology = plan::read_topology();
  EXPECT_EQ(parsed({"p"}).value().world_size, usable_cores(topology.value()));
}

TEST(RunOptions, HostsHaveTheRanks) {
  EXPECT_EQ(parsed({"--hosts", "a:2,b:3", "p"}).value().world_size, 5);
  EXPECT_EQ(parsed({"-n", "5", "--hosts", "a:2,b:3", "p"}).value().world_size, 5);
  EXPECT_THAT(parsed({"-n", "4", "--hosts", "a:2,b:3", "p"}).error().message, HasSubstr("leave -n out"));
}

TEST(RunOptions, SayWhatIsWrong) {
  const std::pair<Words, const char*> cases[] = {
      {{"-n", "2"}, "which program?"},
      {{"-n", "0", "p"}, "from 1 to"},
      {{"--env", "A", "p"}, "NAME=VALUE"},
      {{"--env", "=x", "p"}, "NAME=VALUE"},
      {{"--bind=socket", "p"}, "'socket'"},
      {{"--grace", "-1", "p"}, "--grace"},
      {{"--timeout", "inf", "p"}, "--timeout"},
      {{"--hosts", "a", "--hostfile", "f", "p"}, "one of them"},
      {{"--hostfile", "/nope/hosts", "p"}, "/nope/hosts"},
      {{"--launch-agent", "ssh 'x", "p"}, "does not end"},
  };
  for (const auto& [words, part] : cases) {
    const auto options = parsed(words);
    ASSERT_FALSE(options.ok()) << words[0];
    EXPECT_THAT(options.error().message, HasSubstr(part));
  }
}

TEST(RunOptions, NothingIsNotTheDefault) {
  for (const char* option : {"-n", "--hosts", "--hostfile"}) {
    EXPECT_THROW(parsed({option, "", "p"}), CLI::ValidationError) << option;
  }
}

TEST(RunOptions, HelpShowsHowBindIsTyped) {
  CLI::App app;
  RunArguments arguments;
  declare_run_options(app, arguments);
  EXPECT_THAT(app.help(), HasSubstr("--bind[=HOW] "));
  EXPECT_THAT(app.help(), HasSubstr("--grace SECONDS "));
}

}  // namespace
}  // namespace tutti::cli
