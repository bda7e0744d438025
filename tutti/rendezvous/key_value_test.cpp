#include "tutti/rendezvous/key_value.h"

#include <algorithm>
#include <limits>
#include <map>

#include <gmock/gmock.h>

namespace tutti::rendezvous {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

/// A KeyValue that is asked one thing after the other.
class KeyValueTest : public ::testing::Test {
 protected:
  /// Asks; answers of all who were answered are kept by number.
  std::uint64_t ask(Op op, std::vector<std::string> keys, std::vector<std::string> values = {},
                    std::int64_t number = 0) {
    const auto id = next_++;
    std::vector<KeyValue::Answer> answers;
    store_.apply(Ticket{id}, {op, std::move(keys), std::move(values), number}, answers);
    for (auto& [ticket, result] : answers) {
      EXPECT_TRUE(answered_.emplace(static_cast<std::uint64_t>(ticket), std::move(result)).second) << "answered twice";
    }
    return id;
  }
  bool waits(std::uint64_t id) const { return !answered_.contains(id); }
  const Result<Reply>& result(std::uint64_t id) const { return answered_.at(id); }
  const Result<Reply>& now(Op op, std::vector<std::string> keys, std::vector<std::string> values = {},
                           std::int64_t number = 0) {
    return result(ask(op, std::move(keys), std::move(values), number));
  }
  std::string value(const std::string& key) { return now(Op::get, {key}).value().values.at(0); }

  KeyValue store_{1 << 20};
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, Result<Reply>> answered_;
};

TEST_F(KeyValueTest, sets_many_at_once_and_gets_in_the_order_asked) {
  EXPECT_TRUE(now(Op::set, {"a", "b", "c"}, {"1", "2", "3"}).ok());
  EXPECT_THAT(now(Op::get, {"c", "a", "a"}).value().values, ElementsAre("3", "1", "1"));
}

TEST_F(KeyValueTest, a_get_waits_for_the_last_of_its_keys) {
  const auto get = ask(Op::get, {"a", "b", "c"});
  ask(Op::set, {"c"}, {"3"});
  ask(Op::set, {"a"}, {"1"});
  EXPECT_TRUE(waits(get));
  ask(Op::set, {"b"}, {"2"});
  ASSERT_FALSE(waits(get));
  EXPECT_THAT(result(get).value().values, ElementsAre("1", "2", "3"));
}

TEST_F(KeyValueTest, a_key_that_is_erased_meanwhile_is_waited_for_again) {
  const auto get = ask(Op::get, {"a", "b"});
  ask(Op::set, {"a"}, {"1"});
  ask(Op::erase, {"a"});
  ask(Op::set, {"b"}, {"2"});
  EXPECT_TRUE(waits(get));
  ask(Op::set, {"a"}, {"3"});
  ASSERT_FALSE(waits(get));
  EXPECT_THAT(result(get).value().values, ElementsAre("3", "2"));
}

TEST_F(KeyValueTest, everything_that_makes_a_key_wakes_who_waits_for_it) {
  const auto by_add = ask(Op::wait, {"n"});
  const auto by_append = ask(Op::wait, {"t"});
  const auto by_compare = ask(Op::wait, {"c"});
  const auto by_push = ask(Op::wait, {"q"});
  ask(Op::add, {"n"}, {}, 1);
  ask(Op::append, {"t"}, {"x"});
  ask(Op::compare_set, {"c"}, {"", "y"});
  ask(Op::push, {"q"}, {"z"});
  for (const auto id : {by_add, by_append, by_compare, by_push}) {
    EXPECT_FALSE(waits(id));
  }
  EXPECT_EQ(store_.waiting(), 0U);
}

TEST_F(KeyValueTest, adds_to_decimal_texts) {
  EXPECT_EQ(now(Op::add, {"n"}, {}, 3).value().number, 3);
  EXPECT_EQ(now(Op::add, {"n"}, {}, -10).value().number, -7);
  EXPECT_EQ(value("n"), "-7");
  ask(Op::set, {"n"}, {"41"});
  EXPECT_EQ(now(Op::add, {"n"}, {}, 1).value().number, 42);
}

TEST_F(KeyValueTest, does_not_add_to_what_is_no_number) {
  for (const auto* text : {"", "x", "1x", " 1", "1.5", "99999999999999999999"}) {
    ask(Op::set, {"n"}, {text});
    const auto& sum = now(Op::add, {"n"}, {}, 1);
    ASSERT_FALSE(sum.ok()) << text;
    EXPECT_EQ(sum.error().code, Code::invalid_argument);
    EXPECT_EQ(value("n"), text);
  }
  ask(Op::set, {"n"}, {std::to_string(std::numeric_limits<std::int64_t>::max())});
  EXPECT_EQ(now(Op::add, {"n"}, {}, 1).error().code, Code::invalid_argument);
}

TEST_F(KeyValueTest, compare_set_is_that_of_c10d) {
  EXPECT_THAT(now(Op::compare_set, {"k"}, {"other", "new"}).value().values, ElementsAre("other"));
  EXPECT_EQ(now(Op::check, {"k"}).value().number, 0);
  EXPECT_THAT(now(Op::compare_set, {"k"}, {"", "first"}).value().values, ElementsAre("first"));
  EXPECT_THAT(now(Op::compare_set, {"k"}, {"", "second"}).value().values, ElementsAre("first"));
  EXPECT_THAT(now(Op::compare_set, {"k"}, {"first", "third"}).value().values, ElementsAre("third"));
  EXPECT_EQ(value("k"), "third");
}

TEST_F(KeyValueTest, counts_lists_checks_erases) {
  ask(Op::set, {"a", "b"}, {"1", "2"});
  ask(Op::push, {"q"}, {"x"});
  EXPECT_EQ(now(Op::count, {}).value().number, 3);
  EXPECT_THAT(now(Op::list, {}).value().values, UnorderedElementsAre("a", "b", "q"));
  EXPECT_EQ(now(Op::check, {"a", "b", "q"}).value().number, 1);
  EXPECT_EQ(now(Op::check, {"a", "z"}).value().number, 0);
  EXPECT_EQ(now(Op::erase, {"a"}).value().number, 1);
  EXPECT_EQ(now(Op::erase, {"a"}).value().number, 0);
  EXPECT_EQ(now(Op::erase, {"q"}).value().number, 1);
  EXPECT_EQ(now(Op::count, {}).value().number, 1);
}

TEST_F(KeyValueTest, appends_bytes) {
  ask(Op::append, {"t"}, {"ab"});
  ask(Op::append, {"t"}, {std::string("\0c", 2)});
  EXPECT_EQ(value("t"), std::string("ab\0c", 4));
}

TEST_F(KeyValueTest, queues_are_first_in_first_out_and_so_are_those_who_wait) {
  const auto first = ask(Op::pop, {"q"}, {}, 1);
  const auto second = ask(Op::pop, {"q"}, {}, 1);
  ask(Op::push, {"q"}, {"1"});
  EXPECT_TRUE(waits(second));
  ask(Op::push, {"q"}, {"2"});
  ask(Op::push, {"q"}, {"3"});
  EXPECT_THAT(result(first).value().values, ElementsAre("1"));
  EXPECT_THAT(result(second).value().values, ElementsAre("2"));
  EXPECT_EQ(now(Op::queue_length, {"q"}).value().number, 1);
  EXPECT_THAT(now(Op::pop, {"q"}, {}, 0).value().values, ElementsAre("3"));
  EXPECT_EQ(now(Op::pop, {"q"}, {}, 0).error().code, Code::not_found);
  EXPECT_EQ(now(Op::queue_length, {"q"}).value().number, 0);
}

TEST_F(KeyValueTest, a_value_of_the_same_name_does_not_feed_a_queue) {
  const auto pop = ask(Op::pop, {"q"}, {}, 1);
  ask(Op::set, {"q"}, {"value"});
  EXPECT_TRUE(waits(pop));
  const auto get = ask(Op::get, {"r"});
  ask(Op::push, {"r"}, {"pushed"});
  EXPECT_TRUE(waits(get));
}

TEST_F(KeyValueTest, a_barrier_is_reusable) {
  for (int round = 0; round < 3; ++round) {
    const auto one = ask(Op::barrier, {"b"}, {}, 3);
    const auto two = ask(Op::barrier, {"b"}, {}, 3);
    EXPECT_TRUE(waits(one) && waits(two));
    const auto three = ask(Op::barrier, {"b"}, {}, 3);
    EXPECT_TRUE(result(one).ok() && result(two).ok() && result(three).ok());
  }
  EXPECT_EQ(store_.bytes(), 0U);
}

TEST_F(KeyValueTest, who_gave_up_at_a_barrier_does_not_count) {
  const auto quitter = ask(Op::barrier, {"b"}, {}, 2);
  const auto error = store_.cancel(Ticket{quitter});
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code, Code::timed_out);
  EXPECT_THAT(error->message, HasSubstr("1 of 2 came to barrier 'b'"));
  const auto one = ask(Op::barrier, {"b"}, {}, 2);
  EXPECT_TRUE(waits(one));
  ask(Op::barrier, {"b"}, {}, 2);
  EXPECT_FALSE(waits(one));
}

TEST_F(KeyValueTest, participants_must_agree_on_their_number) {
  const auto one = ask(Op::barrier, {"b"}, {}, 3);
  const auto& other = now(Op::barrier, {"b"}, {}, 2);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, Code::mismatch);
  EXPECT_THAT(other.error().message, HasSubstr("one of 3 participants and now as one of 2"));
  EXPECT_TRUE(waits(one));
  EXPECT_EQ(now(Op::barrier, {"c"}, {}, 0).error().code, Code::invalid_argument);
  EXPECT_TRUE(now(Op::barrier, {"c"}, {}, 1).ok());
}

TEST_F(KeyValueTest, says_what_was_missing) {
  std::vector<std::string> keys;
  for (int i = 0; i < 11; ++i) {
    keys.emplace_back("k").append(std::to_string(i));
  }
  ask(Op::set, {"k3"}, {""});
  const auto error = store_.cancel(Ticket{ask(Op::wait, keys)});
  ASSERT_TRUE(error.has_value());
  EXPECT_THAT(error->message, HasSubstr("10 of 11 keys: 'k0', 'k1', 'k2', 'k4'"));
  EXPECT_THAT(error->message, HasSubstr("and 2 more"));
  EXPECT_THAT(error->message, Not(HasSubstr("k3")));
  EXPECT_THAT(store_.cancel(Ticket{ask(Op::pop, {"q"}, {}, 1)})->message, HasSubstr("the queue 'q'"));
  EXPECT_EQ(store_.cancel(Ticket{4711}), std::nullopt);
}

TEST_F(KeyValueTest, shows_odd_keys_harmlessly) {
  const auto error = store_.cancel(Ticket{ask(Op::get, {"\x1b[31m\n" + std::string(500, 'x')})});
  EXPECT_THAT(error->message, HasSubstr("'?[31m?xxx"));
  EXPECT_LT(error->message.size(), 200U);
}

TEST_F(KeyValueTest, all_who_wait_can_be_failed) {
  const auto get = ask(Op::get, {"a"});
  const auto pop = ask(Op::pop, {"q"}, {}, 1);
  const auto barrier = ask(Op::barrier, {"b"}, {}, 2);
  std::vector<KeyValue::Answer> answers;
  store_.fail_all({.code = Code::peer_lost, .message = "rank 1 is lost"}, answers);
  std::vector<std::uint64_t> failed;
  for (const auto& [ticket, result] : answers) {
    EXPECT_EQ(result.error().code, Code::peer_lost);
    failed.push_back(static_cast<std::uint64_t>(ticket));
  }
  EXPECT_THAT(failed, UnorderedElementsAre(get, pop, barrier));
  EXPECT_EQ(store_.waiting(), 0U);
  EXPECT_EQ(store_.bytes(), 0U);
}

TEST_F(KeyValueTest, requests_of_the_wrong_shape_are_refused) {
  const Request wrong[] = {
      {Op::set, {"a"}, {}, 0},
      {Op::set, {"a"}, {"1", "2"}, 0},
      {Op::get, {"a"}, {"1"}, 0},
      {Op::add, {}, {}, 1},
      {Op::add, {"a", "b"}, {}, 1},
      {Op::compare_set, {"a"}, {"1"}, 0},
      {Op::append, {"a"}, {}, 0},
      {Op::push, {}, {"1"}, 0},
      {Op::pop, {}, {}, 1},
      {Op::barrier, {}, {}, 1},
      {Op::count, {"a"}, {}, 0},
      {Op::queue_length, {}, {}, 0},
      {static_cast<Op>(99), {}, {}, 0},
  };
  for (const auto& request : wrong) {
    const auto& answer = now(request.op, request.keys, request.values, request.number);
    ASSERT_FALSE(answer.ok()) << static_cast<int>(request.op);
    EXPECT_EQ(answer.error().code, Code::invalid_argument);
  }
  EXPECT_TRUE(now(Op::wait, {}).ok());
  EXPECT_TRUE(now(Op::set, {}).ok());
}

TEST_F(KeyValueTest, what_it_holds_is_limited) {
  EXPECT_EQ(now(Op::set, {std::string(kMaxKeyBytes + 1, 'k')}, {""}).error().code, Code::invalid_argument);
  EXPECT_TRUE(now(Op::set, {std::string(kMaxKeyBytes, 'k')}, {""}).ok());
  // The store of this test takes 1 MiB.
  const auto& full = now(Op::set, {"a", "b"}, {std::string(500'000, 'x'), std::string(500'000, 'y')});
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, Code::resource_exhausted);
  EXPECT_EQ(now(Op::check, {"a"}).value().number, 0);  // all or none
  EXPECT_TRUE(now(Op::set, {"a"}, {std::string(900'000, 'x')}).ok());
  EXPECT_EQ(now(Op::append, {"a"}, {std::string(100'000, 'x')}).error().code, Code::resource_exhausted);
  EXPECT_EQ(now(Op::push, {"q"}, {std::string(100'000, 'x')}).error().code, Code::resource_exhausted);
  EXPECT_EQ(now(Op::wait, {std::string(60'000, 'w'), std::string(60'000, 'v')}).error().code, Code::resource_exhausted);
  EXPECT_TRUE(now(Op::set, {"a"}, {"small"}).ok());  // replacing makes room
  EXPECT_TRUE(now(Op::push, {"q"}, {std::string(100'000, 'x')}).ok());
}

TEST_F(KeyValueTest, the_same_large_value_many_times_is_not_copied_many_times) {
  ask(Op::set, {"a"}, {std::string(900'000, 'x')});
  const auto& many = now(Op::get, std::vector<std::string>(77, "a"));
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().code, Code::invalid_argument);
}

TEST_F(KeyValueTest, what_is_erased_is_free_again) {
  for (int i = 0; i < 17; ++i) {
    EXPECT_TRUE(now(Op::set, {"a"}, {std::string(900'000, 'x')}).ok());
    ask(Op::push, {"a"}, {std::string(100, 'y')});
    ask(Op::erase, {"a"});
    EXPECT_EQ(store_.bytes(), 0U);
  }
}

}  // namespace
}  // namespace tutti::rendezvous
