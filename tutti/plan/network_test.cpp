#include "tutti/plan/network.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/plan/network_json.h"

namespace tutti::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::filesystem::path clusters() {
  return std::filesystem::path(__FILE__).parent_path().parent_path().parent_path() / "clusters";
}

/// Hosts of 2, three at a leaf, any number of leaves.
Network small() {
  Network network;
  network.name = "small";
  network.levels = {{.name = "host", .members = 2},
                    {.name = "leaf", .members = 3, .link = 5e9},
                    {.name = "spine", .latency = 2e-6, .stream = 1e9, .link = 7e9}};
  return network;
}

TEST(Network, PathsTurnAtTheLowestLevelThatJoins) {
  const Fabric fabric(small(), 14);
  EXPECT_EQ(fabric.hosts(), 7);
  EXPECT_EQ(fabric.path(Rank{0}, Rank{1}).level, 0);
  EXPECT_EQ(fabric.path(Rank{0}, Rank{1}).count, 0);
  const auto near = fabric.path(Rank{1}, Rank{4});
  EXPECT_EQ(near.level, 1);
  EXPECT_EQ(fabric.describe(near.links[0]), "from host 0 up");
  EXPECT_EQ(fabric.describe(near.links[1]), "to host 2 down");
  EXPECT_DOUBLE_EQ(fabric.alone(near), 5e9);
  const auto far = fabric.path(Rank{13}, Rank{0});
  EXPECT_EQ(far.level, 2);
  ASSERT_EQ(far.count, 4);
  EXPECT_EQ(fabric.describe(far.links[2]), "from leaf 2 up");
  EXPECT_DOUBLE_EQ(fabric.alone(far), 1e9);
}

TEST(Network, GroupsJoinedByPairsHaveALinkForEach) {
  auto network = small();
  network.levels[2].joined = Level::Joined::by_pairs;
  network.levels[2].members = 4;
  const Fabric fabric(network, 24);
  const auto path = fabric.path(Rank{0}, Rank{23});
  ASSERT_EQ(path.count, 3);
  EXPECT_EQ(fabric.describe(path.links[2]), "from leaf 0 to leaf 3");
  EXPECT_NE(path.links[2], fabric.path(Rank{23}, Rank{0}).links[2]);
}

TEST(Network, BytesLeaveCaches) {
  const CacheCost own{.bytes = 1000, .seconds_per_byte = 1e-9};
  EXPECT_NEAR(own.missed(200, 16), 0, 2e-3);
  EXPECT_DOUBLE_EQ(own.missed(1000, 16), 0.5);
  EXPECT_NEAR(own.missed(5000, 16), 1, 2e-3);
  const CacheCost shared{.bytes = 1000, .seconds_per_byte = 1e-9, .shared = true};
  EXPECT_DOUBLE_EQ(shared.missed(1000, 1), 0.5);
  EXPECT_DOUBLE_EQ(shared.missed(250, 16), 0.5);
}

TEST(Network, ProcessorsAreSlowerInACrowd) {
  auto network = small();
  EXPECT_EQ(crowding_at(network.processors, 5), 1);
  network.processors.crowding = {{2, 1}, {8, 2}};
  EXPECT_DOUBLE_EQ(crowding_at(network.processors, 1), 1);
  EXPECT_DOUBLE_EQ(crowding_at(network.processors, 4), 1.5);
  EXPECT_DOUBLE_EQ(crowding_at(network.processors, 100), 2);
  network.processors.crowding = {{2, 1}, {2, 2}};
  EXPECT_THAT(check(network, 1).error().message, testing::HasSubstr("crowding"));
}

TEST(Network, WithoutCachesAllIsAsFarAsItGets) {
  auto network = small();
  network.processors.copy = 8e9;
  network.processors.memory = 1e10;
  network.levels[0].send = {1e-6, 1e-10};
  network.levels[1].send = {1e-6, 0};
  network.processors.caches = {{.bytes = 1000, .seconds_per_byte = 1e-10}};
  network.processors.crowding = {{2, 1}, {8, 2}};
  const auto near = without_caches(network, 1, 1);
  EXPECT_NEAR(near.processors.copy, 8e9, 1);
  EXPECT_GE(near.processors.memory, 1e15);
  EXPECT_TRUE(near.processors.caches.empty() && near.processors.crowding.empty());
  const auto far = without_caches(network, 1e9, 8);
  EXPECT_NEAR(far.processors.copy, 1 / (2 * (1 / 8e9 + 2e-10)), 1);
  EXPECT_NEAR(far.levels[0].send.seconds_per_byte, 4e-10, 1e-15);
  EXPECT_NEAR(far.processors.memory, 1e10, 1);
  EXPECT_EQ(far.levels[1].send.seconds_per_byte, 0);
  EXPECT_DOUBLE_EQ(far.levels[1].send.seconds, 2e-6);
}

TEST(Network, SaysWhatCachesCannotBe) {
  auto network = small();
  network.processors.caches = {{.bytes = 1000}, {.bytes = 1000}};
  EXPECT_THAT(check(network, 1).error().message, testing::HasSubstr("caches"));
}

TEST(Network, JsonGoesThereAndBack) {
  auto network = small();
  network.levels[0].send = {2e-6, 1.25e-10, 3e-7, 1500};
  network.levels[1].eager_bytes = 4096;
  network.levels[1].burst = 16384;
  network.levels[0].ring = {.bytes = 1024, .portion = 256, .host_bytes = 65536, .seconds = 3e-7, .answer = 2e-6};
  network.levels[2].meeting = {.seconds = 5e-6, .seconds_per_member = 2e-6};
  network.processors.cores = 3;
  network.processors.sum = 25e9;
  network.processors.step_seconds = 4e-8;
  network.processors.switch_seconds = 6e-7;
  network.processors.caches = {{.bytes = 1024, .seconds_per_byte = 0.25e-9},
                               {.bytes = 4096, .seconds_per_byte = 0.5e-9, .shared = true}};
  network.processors.crowding = {{2, 1}, {8, 1.5}};
  network.slow = {{.level = 1, .group = 2, .factor = 0.5}};
  const auto text = to_json(network);
  const auto again = parse_network(text, "there");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(again.value()), text);
  EXPECT_DOUBLE_EQ(again.value().levels[0].send.seconds_per_byte, 1.25e-10);
  EXPECT_DOUBLE_EQ(again.value().levels[0].send.ramp, 3e-7);
  EXPECT_EQ(again.value().levels[0].send.ramp_bytes, 1500);
  EXPECT_FALSE(again.value().processors.caches[0].shared);
  EXPECT_TRUE(again.value().processors.caches[1].shared);
  EXPECT_DOUBLE_EQ(again.value().processors.caches[1].seconds_per_byte, 0.5e-9);
  EXPECT_EQ(again.value().levels[1].eager_bytes, 4096);
  EXPECT_EQ(again.value().levels[1].burst, 16384);
  EXPECT_EQ(again.value().levels[0].ring.portion, 256);
  EXPECT_DOUBLE_EQ(again.value().levels[0].ring.answer, 2e-6);
  EXPECT_EQ(again.value().levels[0].ring.host_bytes, 65536);
  EXPECT_DOUBLE_EQ(again.value().levels[2].meeting.seconds_per_member, 2e-6);
  EXPECT_DOUBLE_EQ(again.value().processors.step_seconds, 4e-8);
  EXPECT_DOUBLE_EQ(again.value().processors.switch_seconds, 6e-7);
  EXPECT_EQ(again.value().slow[0].level, 1);
}

TEST(Network, ThoseInTheRepositoryCanBeRead) {
  for (const auto& [file, capacity] : std::vector<std::pair<std::string, std::int64_t>>{
           {"fat-tree.json", 16384}, {"dragonfly.json", 16384}, {"two-hosts-1gbit.json", 16}, {"one-host.json", 16}}) {
    const auto network = read_network((clusters() / file).string());
    ASSERT_TRUE(network) << network.error().message;
    EXPECT_GE(network.value().capacity(), capacity);
    for (const auto& level : network.value().levels) {
      EXPECT_NE(level.source, "") << file;
    }
  }
}

/// More than numbers hold, where nobody needs so much.
TEST(Network, ThereMayBeRoomForFarTooMany) {
  const std::string full = R"({"name": "full", "members": 1073741824})";
  const auto network = parse_network(
      R"({"name": "a", "levels": [)" + full + "," + full + "," + full + R"(, {"name": "last"}]})", "x.json");
  ASSERT_TRUE(network) << network.error().message;
  const Fabric fabric(network.value(), 4);
  EXPECT_EQ(fabric.hosts(), 1);
  EXPECT_EQ(fabric.ranks_of_group(3), network.value().capacity());
}

TEST(Network, RefusesWithFileKeyAndWhatIsExpected) {
  const std::string level = R"({"name": "host", "members": 2})";
  std::string crowd = R"({"ranks": 1})";
  for (int ranks = 2; ranks <= 65; ++ranks) {
    crowd += R"(, {"ranks": )" + std::to_string(ranks) + "}";
  }
  for (
      const auto& [text, sentence] : std::vector<std::pair<std::string, std::string>>{
          {"{", "x.json: not JSON"},
          {"[]", "x.json: the whole: expected an object"},
          {"{}", "x.json: name: expected a text"},
          {R"({"name": "a"})", "x.json: levels: expected a list"},
          {R"({"name": "a", "levels": []})", "it has 0 levels; there are 1 to 5"},
          {R"({"name": "a", "levels": [{"name": "host", "members": -1}]})",
           "levels[0].members: expected a whole number"},
          {R"({"name": "a", "levels": [{"name": "host", "latency": 1}]})",
           "levels[0].latency: expected none of that name"},
          {R"({"name": "a", "levels": [{"name": "h", "send": {"us": "1"}}]})", "levels[0].send.us: expected a number"},
          {R"({"name": "a", "levels": [{"name": "h", "joined": "rope"}]})", "levels[0].joined: expected \"switch\""},
          {R"({"name": "a", "levels": [{"name": "h"}, {"name": "s"}]})", "level 'h': members: a number above 0"},
          {R"({"name": "a", "levels": [{"name": "h", "link_gb_per_s": 2}]})", "level 'h': a host has no links"},
          {R"({"name": "a", "processors": {"copy": 1}, "levels": [)" + level + "]}", "processors.copy: expected none"},
          {R"({"name": "a", "levels": [)" + level + R"(], "slow_links": [{"level": "host"}]})",
           "slow_links[0].level: expected the name of a level above the first"},
          {R"({"name": "a", "levels": [{"name": "h", "stream_gb_per_s": 1e-300}]})",
           "levels[0].stream_gb_per_s: expected 0 (no limit), or from 1e-6 on"},
          {R"({"name": "a", "levels": [{"name": "h", "send": {"gb_per_s": 1e308}}]})", "levels[0].send.gb_per_s"},
          {R"({"name": "a", "levels": [{"name": "h", "latency_us": 1e300}]})",
           "levels[0].latency_us: expected at most 1e11 us"},
          {R"({"name": "a", "levels": [{"name": "h", "latency_us": 1e400}]})", "x.json: not JSON"},
          {R"({"name": "a", "levels": [{"name": "h", "members": 1}, {"name": "s", "members": 4096, "joined": "pairs"}]})",
           "level 's': joined by pairs: 2048 members at most"},
          {R"({"name": "a", "processors": {"crowding": [)" + crowd + "]}, \"levels\": [" + level + "]}",
           "caches and crowding: lists of 64 at most"},
          {R"({"name": "a", "levels": [{"name": "h", "eager_bytes": 1e300}]})",
           "levels[0].eager_bytes: expected at most 1e18 bytes"},
          {R"({"name": "a", "processors": {"crowding": [{"ranks": 2, "factor": 1e-300}]}, "levels": [)" + level + "]}",
           "processors.crowding[0].factor: expected a factor from 1e-6"}}) {
    const auto network = parse_network(text, "x.json");
    ASSERT_FALSE(network) << text;
    EXPECT_THAT(network.error().message, HasSubstr(sentence));
  }
  EXPECT_THAT(read_network("/nowhere.json").error().message, HasSubstr("cannot read /nowhere.json: No such file"));
  EXPECT_THAT(read_network("/dev/zero").error().message, HasSubstr("cannot read /dev/zero: it is no file"));
  EXPECT_THAT(check(small(), 0).error().message, HasSubstr("0 ranks, and it has room for 1 to"));
}

}  // namespace
}  // namespace tutti::plan
