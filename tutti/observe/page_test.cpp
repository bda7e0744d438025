#include "tutti/observe/page.h"

#include <array>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tutti/observe/page_template.h"

namespace tutti::observe {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::vector<json> kRuns{json{{"format", 1}, {"name", "</script><b>&"}, {"<", "\xc3\xa4 /*TUTTI:DATA*/"}},
                              json{{"format", 1}, {"name", "caf\xc3"}}};

TEST(Page, TheDataStandInTheirPlace) {
  const auto page = fill_page("before /*TUTTI:DATA*/ after", kRuns).value();
  ASSERT_THAT(page, testing::StartsWith("before [{"));
  ASSERT_THAT(page, testing::EndsWith("}] after"));
  const auto data = json::parse(page.substr(7, page.size() - 7 - 6));
  EXPECT_EQ(data.at(0), kRuns[0]);
  EXPECT_EQ(data.at(1).at("name"), "caf\xef\xbf\xbd");
}

TEST(Page, NothingInTheDataEndsTheirScript) {
  const auto page = fill_page("/*TUTTI:DATA*/", kRuns).value();
  EXPECT_THAT(page, testing::Not(HasSubstr("<")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cb>&"));
}

TEST(Page, ATemplateHasOnePlace) {
  EXPECT_EQ(fill_page("no place", kRuns).error().code, Code::invalid_argument);
  EXPECT_EQ(fill_page("/*TUTTI:DATA*/ /*TUTTI:DATA*/", kRuns).error().code, Code::invalid_argument);
}

TEST(Page, TheProgramHasItInItselfOrSaysWhatToDo) {
  const auto page = report_page(kRuns);
  if (page_template().empty()) {
    ASSERT_FALSE(page.ok());
    EXPECT_THAT(page.error().message, HasSubstr("'tools/setup report' fetches it"));
    return;
  }
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(page.value(), testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(page.value(), testing::EndsWith("</html>\n"));
  EXPECT_THAT(page.value(), HasSubstr("uPlot"));
  EXPECT_THAT(page.value(), HasSubstr("\\u003c/script>\\u003cb>&"));
}

}  // namespace
}  // namespace tutti::observe
