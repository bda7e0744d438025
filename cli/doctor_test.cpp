#include "cli/doctor.h"

#include <set>

#include <gmock/gmock.h>

#include "cli/memory_bandwidth.h"
#include "cli/system_facts.h"

namespace tutti::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Findings two() {
  return {{.topic = "processor", .name = "cores", .value = "2", .meaning = "few", .grade = Grade::ok, .data = 2},
          {.topic = "memory", .name = "amount of it", .value = "much", .meaning = "fine", .grade = Grade::warning}};
}

TEST(FindingsTable, IsAligned) {
  EXPECT_EQ(findings_table(two(), false),
            "processor\n"
            "  ok       cores         2     few\n"
            "\n"
            "memory\n"
            "  warning  amount of it  much  fine\n");
  EXPECT_THAT(findings_table(two(), true), HasSubstr("\x1b[33mwarning"));
}

TEST(FindingsJson, HasEverything) {
  const auto json = findings_json(two());
  EXPECT_EQ(json["processor"]["cores"]["data"], 2);
  EXPECT_EQ(json["processor"]["cores"]["status"], "ok");
  EXPECT_EQ(json["memory"]["amount of it"]["meaning"], "fine");
  EXPECT_TRUE(json["memory"]["amount of it"]["data"].is_null());
}

TEST(Doctor, EveryFindingIsWhole) {
  std::set<std::string> names;
  for (const auto examine : {examine_processor, examine_memory, examine_kernel, examine_limits, examine_software}) {
    for (const Finding& finding : examine()) {
      EXPECT_FALSE(finding.value.empty()) << finding.name;
      EXPECT_FALSE(finding.meaning.empty()) << finding.name;
      EXPECT_NE(finding.grade, Grade::failure) << finding.name << ": " << finding.meaning;
      EXPECT_TRUE(names.insert(finding.name).second) << finding.name << " is there twice";
    }
  }
  for (const char* name :
       {"cores", "cgroup quota", "NUMA nodes", "memory", "copy speed", "page size", "huge pages", "shared huge pages",
        "memfd", "pidfd", "futex", "/dev/shm", "TCP", "open files", "MPI", "CUDA", "LibTorch", "tutti"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Doctor, TellsOfPacedMessages) {
  EXPECT_EQ(tcp_finding("cubic").grade, Grade::ok);
  EXPECT_EQ(tcp_finding("").value, "unknown");
  const auto paced = tcp_finding("bbr");
  EXPECT_EQ(paced.grade, Grade::note);
  EXPECT_THAT(paced.meaning, HasSubstr("cubic or reno"));
}

TEST(BytesText, PicksAUnit) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(4096), "4 KiB");
  EXPECT_EQ(bytes_text(1.5 * 1024 * 1024 * 1024), "1.5 GiB");
}

TEST(Chosen, IsInBrackets) {
  EXPECT_EQ(chosen("always [madvise] never"), "madvise");
  EXPECT_EQ(chosen("plain"), "plain");
}

TEST(FindProgram, LooksInThePath) {
  EXPECT_THAT(find_program("sh"), HasSubstr("/sh"));
  EXPECT_EQ(find_program("no-such-program-at-all"), "");
}

TEST(FirstLineOfCommand, IsEmptyWhenThereIsNone) {
  EXPECT_EQ(first_line_of_command("echo one two"), "one two");
  EXPECT_EQ(first_line_of_command("false"), "");
}

TEST(CgroupFolders, EndAtTheMount) {
  for (const std::string& folder : cgroup_folders("memory")) {
    EXPECT_THAT(folder, HasSubstr("/sys/fs/cgroup"));
    EXPECT_THAT(folder, Not(::testing::EndsWith("/")));
  }
}

TEST(MemoryForRanks, IsNoMoreThanThereIs) {
  EXPECT_GT(memory_info("MemTotal"), 1 << 20);
  EXPECT_EQ(memory_info("NoSuchThing"), 0);
  EXPECT_GT(memory_for_ranks(), 1 << 20);
  EXPECT_LE(memory_for_ranks(), memory_info("MemTotal") + memory_info("SwapTotal"));
}

TEST(CopySpeed, IsMoreThanNothing) {
  const CopySpeed speed = measure_copy_speed(3, 1'000'003);
  EXPECT_GT(speed.one_core, 0);
  EXPECT_GT(speed.all_cores, 0);
  EXPECT_EQ(speed.bytes, 1'000'003U);
}

}  // namespace
}  // namespace tutti::cli
