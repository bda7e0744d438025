#include "tutti/rendezvous/job.h"

#include <gmock/gmock.h>

namespace tutti::rendezvous {
namespace {

using ::testing::HasSubstr;

constexpr ConnectionId kZero{10};
constexpr ConnectionId kOne{11};

/// A job of two ranks that is spoken to in frames.
class JobTest : public ::testing::Test {
 protected:
  JobTest() {
    EXPECT_TRUE(job_.hello(kZero, hello(0)).ok());
    EXPECT_TRUE(job_.hello(kOne, hello(1)).ok());
  }
  static Hello hello(int rank) {
    return {.rank = Rank{rank}, .world_size = 2, .pid = 100 + rank, .version = "0.1.0", .host = "a"};
  }
  void say(ConnectionId who, Frame frame) {
    outs_.clear();
    ASSERT_TRUE(job_.frame(who, std::move(frame), outs_).ok());
  }
  Frame out(std::size_t index) {
    auto decoded = decode_frame(outs_.at(index).bytes);
    EXPECT_TRUE(decoded.ok() && decoded.value());
    return decoded.value()->value;
  }
  static Frame request(std::uint64_t id, Op op, std::vector<std::string> keys, std::vector<std::string> values = {},
                       std::int64_t number = 0) {
    return {.id = id, .body = Request{op, std::move(keys), std::move(values), number}};
  }

  Job job_{2, "0.1.0"};
  std::vector<Job::Out> outs_;
};

TEST_F(JobTest, answers_go_to_who_asked_with_their_number) {
  say(kZero, request(7, Op::get, {"k"}));
  EXPECT_TRUE(outs_.empty());
  say(kOne, request(7, Op::set, {"k"}, {"v"}));
  ASSERT_EQ(outs_.size(), 2U);
  EXPECT_EQ(outs_[0].to, kOne);
  EXPECT_EQ(outs_[1].to, kZero);
  EXPECT_EQ(out(1).id, 7U);
  EXPECT_EQ(std::get<Reply>(out(1).body).values, std::vector<std::string>{"v"});
}

TEST_F(JobTest, a_cancelled_call_is_answered_once) {
  say(kZero, request(3, Op::get, {"k"}));
  say(kZero, {.id = 3, .body = Cancel{}});
  ASSERT_EQ(outs_.size(), 1U);
  EXPECT_EQ(std::get<Error>(out(0).body).code, Code::timed_out);
  say(kZero, {.id = 3, .body = Cancel{}});
  EXPECT_TRUE(outs_.empty());
  say(kOne, request(1, Op::set, {"k"}, {"v"}));
  EXPECT_EQ(outs_.size(), 1U);
}

TEST_F(JobTest, a_number_in_use_is_refused) {
  say(kZero, request(3, Op::get, {"k"}));
  say(kZero, request(3, Op::get, {"l"}));
  ASSERT_EQ(outs_.size(), 1U);
  EXPECT_EQ(std::get<Error>(out(0).body).code, Code::protocol);
}

TEST_F(JobTest, waiting_calls_of_one_member_are_limited) {
  for (std::uint64_t id = 0; id < Job::kMaxWaiting; ++id) {
    say(kZero, request(id, Op::get, {"k"}));
  }
  EXPECT_TRUE(outs_.empty());
  say(kZero, request(9999, Op::get, {"k"}));
  ASSERT_EQ(outs_.size(), 1U);
  EXPECT_EQ(std::get<Error>(out(0).body).code, Code::resource_exhausted);
  say(kOne, request(1, Op::set, {"k"}, {"v"}));
  EXPECT_EQ(outs_.size(), 1 + Job::kMaxWaiting);
}

TEST_F(JobTest, who_leaves_takes_its_waiting_calls_along) {
  say(kZero, request(1, Op::barrier, {"b"}, {}, 2));
  std::vector<Job::Out> outs;
  EXPECT_FALSE(job_.frame(kZero, {.id = 0, .body = Goodbye{}}, outs).value());
  EXPECT_EQ(job_.members(), 1U);
  say(kOne, request(1, Op::barrier, {"b"}, {}, 2));
  EXPECT_TRUE(outs_.empty());  // the one who left does not count
}

TEST_F(JobTest, a_generation_that_all_left_is_forgotten) {
  say(kZero, request(1, Op::set, {"k"}, {"v"}));
  std::vector<Job::Out> outs;
  EXPECT_FALSE(job_.frame(kZero, {.id = 0, .body = Goodbye{}}, outs).value());
  EXPECT_EQ(job_.generations(), 1U);
  EXPECT_FALSE(job_.frame(kOne, {.id = 0, .body = Goodbye{}}, outs).value());
  EXPECT_EQ(job_.generations(), 0U);
}

TEST_F(JobTest, a_loss_ends_waiting_and_later_calls) {
  say(kZero, request(1, Op::get, {"k"}));
  outs_.clear();
  EXPECT_THAT(job_.lost(kOne, outs_), HasSubstr("rank 1 (pid 101 on host a) is lost"));
  ASSERT_EQ(outs_.size(), 1U);
  EXPECT_EQ(std::get<Error>(out(0).body).rank, Rank{1});
  say(kZero, request(2, Op::count, {}));
  ASSERT_EQ(outs_.size(), 1U);
  EXPECT_EQ(std::get<Error>(out(0).body).code, Code::peer_lost);
}

TEST_F(JobTest, a_lost_rank_may_come_again_in_the_next_generation) {
  outs_.clear();
  job_.lost(kOne, outs_);
  EXPECT_EQ(job_.hello(ConnectionId{12}, hello(1)).value(), Generation{1});
}

TEST_F(JobTest, members_do_not_speak_like_servers) {
  EXPECT_EQ(job_.frame(kZero, {.id = 1, .body = Reply{}}, outs_).error().code, Code::protocol);
  EXPECT_EQ(job_.frame(kZero, {.id = 1, .body = Error{}}, outs_).error().code, Code::protocol);
}

}  // namespace
}  // namespace tutti::rendezvous
