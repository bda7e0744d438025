#include "tutti/gradient/foresight.h"

#include <gtest/gtest.h>

namespace tutti::gradient {
namespace {

constexpr std::size_t kSmall = 100;
constexpr std::size_t kOne = 64 << 10;
constexpr std::size_t kTwo = 96 << 10;

/// What a backward pass does, in its order.
struct Event {
  enum class Kind { request, gradient } kind;
  std::size_t which;    // bytes, or the parameter
  std::uintptr_t data;  // what it was given, or where it lies
};

Event request(std::size_t bytes, std::uintptr_t data) { return {Event::Kind::request, bytes, data}; }
Event gradient(std::size_t parameter, std::uintptr_t data) { return {Event::Kind::gradient, parameter, data}; }

/// By request of the pass which parameter was foretold.
std::vector<std::optional<std::size_t>> pass(Foresight& foresight, const std::vector<Event>& events) {
  std::vector<std::optional<std::size_t>> foretold;
  foresight.begin_pass();
  for (const auto& [kind, which, data] : events) {
    const auto* const pointer = reinterpret_cast<const void*>(data);
    if (kind == Event::Kind::request) {
      foretold.push_back(foresight.asked(which));
      foresight.given(pointer);
    } else {
      foresight.arrived(which, pointer);
    }
  }
  return foretold;
}

using Foretold = std::vector<std::optional<std::size_t>>;
constexpr auto kNothing = std::nullopt;

TEST(Foresight, ForetellsWhatTwoPassesShowed) {
  Foresight foresight({kOne, kTwo, kSmall});
  const std::vector<Event> events = {
      request(kOne, 10), request(kOne, 20), request(kSmall, 30), request(kTwo, 40),
      gradient(2, 30),   gradient(0, 20),   request(kTwo, 50),   gradient(1, 40),
  };
  EXPECT_EQ(pass(foresight, events), Foretold(5, kNothing));
  EXPECT_EQ(pass(foresight, events), Foretold(5, kNothing));
  EXPECT_EQ(pass(foresight, events), (Foretold{kNothing, 0, kNothing, 1, kNothing}));
  EXPECT_EQ(pass(foresight, events), (Foretold{kNothing, 0, kNothing, 1, kNothing}));
}

TEST(Foresight, DoesNotMindOtherSizesBetween) {
  Foresight foresight({kOne});
  for (const std::uintptr_t number : {1, 2}) {
    pass(foresight, {request(kOne, number), gradient(0, number)});
  }
  EXPECT_EQ(pass(foresight, {request(kTwo, 9), request(kSmall, 8), request(kOne, 7), gradient(0, 7)}),
            (Foretold{kNothing, kNothing, 0}));
}

TEST(Foresight, TakesTheLastWhereMemoryIsUsedAgain) {
  Foresight foresight({kOne});
  const std::vector<Event> events = {request(kOne, 1), request(kOne, 1), gradient(0, 1)};
  pass(foresight, events);
  pass(foresight, events);
  EXPECT_EQ(pass(foresight, events), (Foretold{kNothing, 0}));
}

TEST(Foresight, LearnsAgainWhenAPassIsAnother) {
  Foresight foresight({kOne});
  const std::vector<Event> once = {request(kOne, 1), gradient(0, 1)};
  const std::vector<Event> twice = {request(kOne, 1), request(kOne, 2), gradient(0, 2)};
  pass(foresight, once);
  pass(foresight, once);
  EXPECT_EQ(pass(foresight, twice), (Foretold{0, kNothing})) << "not known yet";
  EXPECT_EQ(pass(foresight, twice), (Foretold{kNothing, kNothing}));
  EXPECT_EQ(pass(foresight, twice), (Foretold{kNothing, 0}));
}

TEST(Foresight, ForgetsAGradientThatNobodyAskedFor) {
  Foresight foresight({kOne});
  const std::vector<Event> events = {request(kOne, 1), gradient(0, 1)};
  pass(foresight, events);
  pass(foresight, events);
  pass(foresight, {request(kOne, 1), gradient(0, 77)});
  EXPECT_EQ(pass(foresight, events), Foretold{kNothing});
}

TEST(Foresight, OfAMistakeItLearns) {
  Foresight foresight({kOne, kTwo});
  const std::vector<Event> events = {request(kOne, 1), request(kTwo, 2), gradient(0, 1), gradient(1, 2)};
  pass(foresight, events);
  pass(foresight, events);
  foresight.mistaken(0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(pass(foresight, events), (Foretold{kNothing, 1}));
  }
}

}  // namespace
}  // namespace tutti::gradient
