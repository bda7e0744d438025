#include "train/failure.h"

#include <algorithm>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/comm/exception.h"

namespace tutti::train {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

/// What ranks say that fail with these errors at about the same time, sorted; those without one do not fail.
std::vector<std::string> said(const std::vector<std::optional<Error>>& errors) {
  const bool all = std::all_of(errors.begin(), errors.end(),
                               [](const auto& error) { return error && error->code != Code::peer_lost; });
  std::vector<std::string> sentences;
  std::mutex mutex;
  run_ranks(static_cast<int>(errors.size()), [&](World& world) {
    const auto& error = errors[to_index(world.rank())];
    const auto sentence =
        error ? failure_to_say(world, *error, all ? 20s : std::chrono::milliseconds(300)) : std::nullopt;
    const std::scoped_lock lock(mutex);
    if (sentence) {
      sentences.push_back(*sentence);
    }
  });
  std::sort(sentences.begin(), sentences.end());
  return sentences;
}

TEST(Failure, OfAllRanksIsSaidOnce) {
  const Error gone{Code::not_found, "text.txt: cannot read"};
  EXPECT_THAT(said({gone, gone, gone}), ElementsAre("text.txt: cannot read"));
  EXPECT_THAT(said({gone}), ElementsAre("text.txt: cannot read"));
}

TEST(Failure, OfSomeIsSaidWithTheRank) {
  const Error gone{Code::not_found, "text.txt: cannot read"};
  const Error full{Code::system, "no space"};
  EXPECT_THAT(said({{}, gone, {}}), ElementsAre("rank 1: text.txt: cannot read"));
  EXPECT_THAT(said({gone, full, {}}), ElementsAre("rank 0: text.txt: cannot read", "rank 1: no space"));
  EXPECT_THAT(said({{}, gone, gone}),
              ElementsAre(testing::MatchesRegex("rank [12] and 1 more: text.txt: cannot read")));
}

TEST(Failure, WhoLostARankLetsThatOneSpeak) {
  const Error gone{Code::not_found, "text.txt: cannot read"};
  const Error lost{Code::peer_lost, "all_reduce #7: rank 1 left", Rank{1}};
  EXPECT_THAT(said({lost, gone, lost}), ElementsAre("rank 1: text.txt: cannot read"));
  EXPECT_THAT(said({lost, {}, lost}), testing::IsEmpty()) << "it was killed: the launcher says so";
  EXPECT_THAT(said({lost, Error{Code::aborted, "text.txt: has become shorter"}, lost}),
              ElementsAre("rank 1: text.txt: has become shorter"))
      << "no other rank is to blame";
}

TEST(Failure, IsASentenceWithoutCpp) {
  const auto error_of = [](const auto& raise) {
    try {
      raise();
    } catch (...) {
      return caught_error();
    }
    return Error{};
  };
  EXPECT_EQ(error_of([] { throw Exception({Code::mismatch, "a sentence", Rank{3}}); }).rank, Rank{3});
  EXPECT_EQ(error_of([] { throw std::runtime_error("one\ntwo"); }).message, "one");
  const auto torch = error_of([] { TORCH_CHECK(false, "what LibTorch says"); }).message;
  EXPECT_EQ(torch, "what LibTorch says");
  const auto no_memory = error_of([] { (void)torch::empty({std::int64_t{1} << 50}); });
  EXPECT_EQ(no_memory.code, Code::resource_exhausted);
  EXPECT_THAT(no_memory.message, testing::StartsWith("there is not enough memory"));
  EXPECT_EQ(error_of([] { throw std::bad_alloc(); }).message, no_memory.message);
}

}  // namespace
}  // namespace tutti::train
