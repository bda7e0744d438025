#include "cli/inquest.h"

#include <csignal>

#include <gmock/gmock.h>

#include "tutti/rendezvous/test_server.h"

namespace tutti::cli {
namespace {

using ::testing::HasSubstr;

// Wait statuses as Linux encodes them.
constexpr int exited(int code) { return code << 8; }

/// Three ranks that run and have met in the store.
class InquestTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int rank = 0; rank < kRanks; ++rank) {
      inquest_.rank_started(Rank{rank}, 4711 + rank, "");
      stores_.push_back(job_.join(rank));
    }
  }

  /// Its connection is gone, and the server has noticed.
  void leave(int rank) {
    stores_[static_cast<std::size_t>(rank)].reset();
    ASSERT_TRUE(job_.eventually([&](const auto&) { return job_.server().left_at(Rank{rank}).has_value(); }));
  }
  void end(int rank, int status) {
    if (stores_[static_cast<std::size_t>(rank)]) {
      leave(rank);
    }
    inquest_.rank_ended(Rank{rank}, status);
  }

  static constexpr int kRanks = 3;
  rendezvous::TestServer job_{rendezvous::Address::Kind::unix_name, kRanks};
  Inquest inquest_{kRanks, job_.server()};

 private:
  std::vector<std::shared_ptr<rendezvous::Store>> stores_;
};

TEST_F(InquestTest, WhoEndedFirstIsToBlame) {
  end(0, 0);
  end(2, exited(3));
  end(1, exited(1));
  EXPECT_FALSE(inquest_.culprit_may_come());
  EXPECT_EQ(inquest_.blamed(), std::nullopt);
  EXPECT_EQ(inquest_.judge().rank, Rank{2});
  EXPECT_THAT(inquest_.verdict(), HasSubstr("rank 2 (pid 4713) exited with code 3 after"));
  EXPECT_THAT(inquest_.verdict(), HasSubstr("before it, rank 0 had left with code 0"));
}

TEST_F(InquestTest, WhoLeftTheStoreFirstIsAwaitedAndBlamed) {
  leave(1);
  EXPECT_FALSE(inquest_.culprit_may_come()) << "nobody failed";
  end(0, exited(7));
  EXPECT_TRUE(inquest_.culprit_may_come());
  end(2, exited(7));
  EXPECT_TRUE(inquest_.culprit_may_come());
  end(1, exited(5));
  EXPECT_FALSE(inquest_.culprit_may_come());
  EXPECT_EQ(inquest_.judge().rank, Rank{1});
}

TEST_F(InquestTest, WhoLeftLaterIsNotAwaited) {
  leave(0);
  leave(1);
  end(0, exited(7));
  EXPECT_FALSE(inquest_.culprit_may_come());
  EXPECT_EQ(inquest_.judge().rank, Rank{0});
}

TEST_F(InquestTest, NeitherIsWhoVanished) {
  leave(1);
  end(0, exited(7));
  inquest_.rank_vanished(Rank{1});
  EXPECT_FALSE(inquest_.culprit_may_come());
}

TEST_F(InquestTest, ASignalCountsMoreThanWhoLeftFirst) {
  leave(1);
  end(1, exited(5));
  end(0, SIGSEGV);
  EXPECT_EQ(inquest_.judge().rank, Rank{0});
}

}  // namespace
}  // namespace tutti::cli
