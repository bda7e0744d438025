#include "tutti/rendezvous/membership.h"

#include <gmock/gmock.h>

namespace tutti::rendezvous {
namespace {

using ::testing::HasSubstr;

Hello rank(int number, int world_size = 3) {
  return {.rank = Rank{number}, .world_size = world_size, .pid = 100 + number, .version = "0.1.0", .host = "a"};
}

std::string refusal(Membership& job, const Hello& hello) {
  const auto admitted = job.admit(hello);
  EXPECT_FALSE(admitted.ok());
  EXPECT_EQ(admitted.error().code, Code::refused);
  return admitted.error().message;
}

TEST(Membership, refusals_name_both_sides) {
  Membership job(3, "0.1.0");
  ASSERT_TRUE(job.admit(rank(1)).ok());
  auto twin = rank(1);
  twin.pid = 456;
  twin.host = "b";
  EXPECT_EQ(refusal(job, twin), "rank 1 is already here (pid 101 on host a); pid 456 on host b says it is rank 1 too");
  EXPECT_EQ(refusal(job, rank(0, 4)), "rank 0 (pid 100 on host a) says the world has 4 ranks; this job has 3");
  auto newer = rank(2);
  newer.version = "0.2.0";
  newer.protocol = 2;
  EXPECT_EQ(refusal(job, newer),
            "rank 2 (pid 102 on host a) runs Tutti 0.2.0 (protocol 2); this job runs 0.1.0 (protocol 1)");
  newer.protocol = kProtocol;  // the ranks would also share memory: the version must be the same, too
  EXPECT_THAT(refusal(job, newer), HasSubstr("runs Tutti 0.2.0 (protocol 1)"));
  EXPECT_EQ(refusal(job, rank(3)), "pid 103 on host a says it is rank 3; this job has ranks 0 to 2");
  EXPECT_THAT(refusal(job, rank(-1)), HasSubstr("rank -1"));
}

TEST(Membership, what_a_peer_calls_itself_cannot_upset_a_terminal) {
  Membership job(3, "0.1.0");
  auto odd = rank(7);
  odd.host = "\x1b[2J" + std::string(1000, 'x');
  const auto sentence = refusal(job, odd);
  EXPECT_THAT(sentence, HasSubstr("host ?[2Jxxx"));
  EXPECT_LT(sentence.size(), 400U);
}

TEST(Membership, who_left_comes_again_as_the_next_world) {
  Membership job(2, "0.1.0");
  EXPECT_EQ(job.admit(rank(0, 2)).value(), Generation{0});
  EXPECT_EQ(job.admit(rank(1, 2)).value(), Generation{0});
  EXPECT_TRUE(job.complete(Generation{0}));
  EXPECT_FALSE(job.leave(Generation{0}, Rank{0}));
  EXPECT_EQ(job.admit(rank(0, 2)).value(), Generation{1});
  EXPECT_FALSE(job.complete(Generation{1}));
  EXPECT_TRUE(job.leave(Generation{0}, Rank{1}));  // the last one
  EXPECT_EQ(job.admit(rank(1, 2)).value(), Generation{1});
  EXPECT_TRUE(job.complete(Generation{1}));
}

TEST(Membership, who_gave_up_waiting_and_comes_again_meets_the_late_one) {
  Membership job(2, "0.1.0");
  EXPECT_EQ(job.admit(rank(1, 2)).value(), Generation{0});
  EXPECT_TRUE(job.leave(Generation{0}, Rank{1}));
  const auto again = job.admit(rank(1, 2)).value();
  EXPECT_EQ(job.admit(rank(0, 2)).value(), again);
}

TEST(Membership, who_left_early_is_still_counted_as_having_come) {
  Membership job(2, "0.1.0");
  ASSERT_TRUE(job.admit(rank(0, 2)).ok());
  ASSERT_TRUE(job.admit(rank(1, 2)).ok());
  job.leave(Generation{0}, Rank{1});
  EXPECT_TRUE(job.complete(Generation{0}));
  EXPECT_EQ(job.failure(Generation{0}), nullptr);
}

TEST(Membership, a_lost_rank_fails_its_generation_alone) {
  Membership job(2, "0.1.0");
  ASSERT_TRUE(job.admit(rank(0, 2)).ok());
  ASSERT_TRUE(job.admit(rank(1, 2)).ok());
  job.leave(Generation{0}, Rank{0});
  ASSERT_EQ(job.admit(rank(0, 2)).value(), Generation{1});
  ASSERT_EQ(job.failure(Generation{1}), nullptr);
  EXPECT_TRUE(job.lose(Generation{1}, Rank{0}));  // it was alone there
  EXPECT_EQ(job.failure(Generation{0}), nullptr);
}

TEST(Membership, the_first_loss_is_the_one_that_is_told) {
  Membership job(3, "0.1.0");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(job.admit(rank(i)).ok());
  }
  job.lose(Generation{0}, Rank{2});
  job.lose(Generation{0}, Rank{1});
  const auto* failure = job.failure(Generation{0});
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->code, Code::peer_lost);
  EXPECT_EQ(failure->rank, Rank{2});
  EXPECT_THAT(failure->message, HasSubstr("rank 2 (pid 102 on host a) is lost"));
}

TEST(Membership, a_better_account_of_the_same_loss_replaces_it) {
  Membership job(3, "0.1.0");
  ASSERT_TRUE(job.admit(rank(0)).ok());
  ASSERT_TRUE(job.admit(rank(2)).ok());
  job.lose(Generation{0}, Rank{2});
  job.declare_lost(Rank{1}, "rank 1 was told to stop");
  EXPECT_EQ(job.failure(Generation{0})->rank, Rank{2});
  job.declare_lost(Rank{2}, "rank 2 was killed by signal 11");
  EXPECT_EQ(job.failure(Generation{0})->message, "rank 2 was killed by signal 11");
}

TEST(Membership, a_rank_declared_lost_before_anybody_came_is_known_to_all) {
  Membership job(2, "0.1.0");
  job.declare_lost(Rank{1}, "rank 1 could not be started");
  const auto generation = job.admit(rank(0, 2)).value();
  ASSERT_NE(job.failure(generation), nullptr);
  EXPECT_EQ(job.failure(generation)->message, "rank 1 could not be started");
}

}  // namespace
}  // namespace tutti::rendezvous
