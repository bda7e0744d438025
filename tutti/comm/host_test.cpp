#include "tutti/comm/host.h"

#include <unistd.h>

#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/rendezvous/client.h"

namespace tutti {
namespace {

using ::testing::HasSubstr;

TEST(Host, IsTheSameForProcessesOfOneHost) {
  const auto here = host_identity();
  EXPECT_FALSE(here.empty());
  EXPECT_EQ(host_identity(), here);
}

TEST(Host, RanksLearnWhereTheOthersAre) {
  const auto store = rendezvous::make_local_store();
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto met = exchange_hosts(*store, "h", Rank{rank}, 3, Deadline::after(std::chrono::seconds(60)),
                                      "from " + std::to_string(rank) + "\nin lines");
      ASSERT_TRUE(met.ok());
      EXPECT_EQ(met.value().names, std::vector<std::string>(3, host_identity()));
      EXPECT_EQ(met.value().told, "from 0\nin lines");
    });
  }
}

TEST(Host, ItsSwitchIsReadFromAFile) {
  const auto host = host_identity();
  const auto path = testing::TempDir() + "switches-" + std::to_string(::getpid());
  std::ofstream(path) << "left: nobody\nright: " << host.substr(0, host.find(' ')) << "\n";
  EXPECT_EQ(read_switch(path).value(), 1U);
  std::ofstream(path) << "left: nobody\n";
  EXPECT_EQ(read_switch(path).value(), 1U);
  std::ofstream(path) << "left: nobody\nright: else\n";
  EXPECT_EQ(read_switch(path).value(), 2U);
  std::ofstream(path) << "left\n";
  EXPECT_THAT(read_switch(path).error().message, HasSubstr(path + ": line 1"));
  ::unlink(path.c_str());
  EXPECT_THAT(read_switch(path).error().message, HasSubstr("cannot be read"));
}

TEST(JobIdentity, IsTheMastersAddressWhereThereIsOne) {
  Environment environment;
  environment.launcher = Launcher::torchrun;
  environment.master_address = "127.0.0.1";
  environment.master_port = 29500;
  environment.job = "j.0";
  const auto first = job_identity(environment).value();
  environment.job = "j.1";
  EXPECT_NE(job_identity(environment).value(), first);
}

TEST(JobIdentity, ByHandNeedsAPort) {
  Environment environment;
  environment.launcher = Launcher::torchrun;
  environment.rank_variable = "RANK";
  EXPECT_THAT(job_identity(environment).error().message, HasSubstr("MASTER_PORT"));
}

TEST(JobIdentity, IsTheLaunchersProcessElsewhere) {
  Environment environment;
  environment.launcher = Launcher::pmi;
  environment.rank_variable = "TUTTI_TEST_RANK_VARIABLE";  // no ancestor has it: the parent is the launcher
  EXPECT_THAT(job_identity(environment).value(), testing::StartsWith(std::to_string(::getppid()) + " "));
}

}  // namespace
}  // namespace tutti
