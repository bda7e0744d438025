#include "cli/hosts.h"

#include <gmock/gmock.h>

namespace tutti::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseHosts, ReadsNamesAndCounts) {
  EXPECT_THAT(parse_hosts("a:2,b:3").value(), ElementsAre(Host{"a", 2}, Host{"b", 3}));
  EXPECT_THAT(parse_hosts("me@node-1.local , 10.0.0.7:5").value(),
              ElementsAre(Host{"me@node-1.local", 1}, Host{"10.0.0.7", 5}));
  EXPECT_THAT(parse_hosts("[fd00::7]:3,[::1]").value(), ElementsAre(Host{"fd00::7", 3}, Host{"::1", 1}));
}

TEST(ParseHosts, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "no host name"},          {"a:2,", "no host name"},     {"a:0", "from 1 to"},
      {"a:x", "no number of ranks"}, {"a:", "no number of ranks"}, {"a:2,b,a:1", "listed twice"},
      {"fd00::7", "in brackets"},    {"[::1", "in brackets"},      {"-oProxyCommand=x", "no host name"},
      {"a b", "no host name"},       {"$(x)", "no host name"},     {"a:65536,b", "is the most"},
  };
  for (const auto& [text, part] : cases) {
    const auto hosts = parse_hosts(text);
    ASSERT_FALSE(hosts.ok()) << text;
    EXPECT_THAT(hosts.error().message, HasSubstr(part)) << text;
  }
}

TEST(ParseHostFile, ReadsBothForms) {
  const auto hosts = parse_host_file("# nodes\na:2\n\n  b slots=3  # the new one\nc\n");
  EXPECT_THAT(hosts.value(), ElementsAre(Host{"a", 2}, Host{"b", 3}, Host{"c", 1}));
  EXPECT_FALSE(parse_host_file("# nothing\n").ok());
  EXPECT_THAT(parse_host_file("a cores=2\n").error().message, HasSubstr("slots="));
}

TEST(ParseRankCount, HasLimits) {
  EXPECT_EQ(parse_rank_count("1").value(), 1);
  EXPECT_EQ(parse_rank_count("65536").value(), 65536);
  for (const char* text : {"0", "-3", "65537", "99999999999999", "", "2x", "1.5", " 2"}) {
    EXPECT_FALSE(parse_rank_count(text).ok()) << text;
  }
}

TEST(SplitCommand, KnowsQuotes) {
  EXPECT_THAT(split_command("ssh  -p 22 -o 'A=b c' \"\"").value(), ElementsAre("ssh", "-p", "22", "-o", "A=b c", ""));
  EXPECT_FALSE(split_command("ssh 'x").ok());
  EXPECT_THAT(split_command("  ").value(), ElementsAre());
}

TEST(ShellQuoted, LeavesPlainWordsAlone) {
  EXPECT_EQ(shell_quoted("/opt/tutti-0.1/bin/tutti"), "/opt/tutti-0.1/bin/tutti");
  EXPECT_EQ(shell_quoted("/my files/it's"), "'/my files/it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

}  // namespace
}  // namespace tutti::cli
