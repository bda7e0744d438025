#include "train/console.h"

#include <cstdlib>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "train/printable.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;
using testing::Not;

/// What a console writes, in memory.
class Shown {
 public:
  explicit Shown(Display display) : file_(::open_memstream(&text_, &length_)), console(display, file_) {}
  Shown(const Shown&) = delete;
  Shown& operator=(const Shown&) = delete;
  ~Shown() {
    std::fclose(file_);
    std::free(text_);
  }
  std::string text() {
    std::fflush(file_);
    return {text_, length_};
  }

 private:
  char* text_ = nullptr;
  std::size_t length_ = 0;
  std::FILE* file_;

 public:
  Console console;
};

Progress at(std::int64_t step) { return {.step = step, .steps = 9, .loss = 2.5}; }

TEST(Console, DrawsOneLineOverAndOverNotTooOften) {
  Shown shown(Display::live);
  for (std::int64_t step = 1; step < 9; ++step) {
    shown.console.progress(at(step));
  }
  EXPECT_THAT(shown.text(), HasSubstr("1/9  loss 2.5"));
  EXPECT_THAT(shown.text(), Not(HasSubstr("2/9")));
  EXPECT_THAT(shown.text(), Not(HasSubstr("\n")));
  shown.console.say("a note");
  EXPECT_THAT(shown.text(), HasSubstr("\r\x1b[Ka note\n\r\x1b[K"));
  shown.console.progress(at(9));
  shown.console.finish();
  EXPECT_THAT(shown.text(), HasSubstr("9/9"));
  EXPECT_TRUE(shown.text().ends_with("\n"));
  const auto before = shown.text().size();
  shown.console.say("the end");
  EXPECT_EQ(shown.text().substr(before), "the end\n");
}

TEST(Console, PrintsLinesWhereThereIsNoTerminal) {
  Shown shown(Display::plain);
  for (std::int64_t step = 1; step <= 9; ++step) {
    auto progress = at(step);
    progress.evaluation_loss = step == 4 ? 3.5 : kUnknown;
    shown.console.progress(progress);
  }
  shown.console.finish();
  shown.console.object("{}");
  EXPECT_EQ(shown.text(), "step 1/9  loss 2.5000\nstep 4/9  loss 2.5000  eval 3.5000\nstep 9/9  loss 2.5000\n");
}

TEST(Console, JsonIsEveryStepAndNothingElse) {
  Shown shown(Display::json);
  shown.console.progress(at(1));
  shown.console.say("a note");
  shown.console.progress(at(2));
  shown.console.object(R"({"summary": 1})");
  std::istringstream lines(shown.text());
  std::vector<nlohmann::json> parsed;
  for (std::string line; std::getline(lines, line);) {
    parsed.push_back(nlohmann::json::parse(line));
  }
  ASSERT_EQ(parsed.size(), 3U);
  EXPECT_EQ(parsed[1]["step"], 2);
  EXPECT_EQ(parsed[2]["summary"], 1);
}

TEST(Printable, ShowsWhatCanBeShown) {
  EXPECT_EQ(printable("a\tb\nc"), "a\tb\nc");
  EXPECT_EQ(printable("für \xF0\x9F\x8E\xB5"), "für \xF0\x9F\x8E\xB5");
  EXPECT_EQ(printable("\x1b[31mred"), "\xEF\xBF\xBD[31mred");
  EXPECT_EQ(printable("a\xC3"), "a\xEF\xBF\xBD");
  EXPECT_EQ(printable("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // a slash in two bytes
  EXPECT_EQ(printable("\xC2\x9B"), "\xEF\xBF\xBD\xEF\xBF\xBD");  // a control character that is a letter's length
  EXPECT_EQ(printable("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");  // half of a pair
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\n\nb");
}

}  // namespace
}  // namespace tutti::train
