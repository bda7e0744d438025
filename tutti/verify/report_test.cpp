#include "tutti/verify/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/verify/words.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using verifying::factor_text;
using verifying::ranks_text;

TEST(Report, RanksAndFactorsInWords) {
  EXPECT_EQ(ranks_text({Rank{2}}), "rank 2");
  EXPECT_EQ(ranks_text({Rank{0}, Rank{1}}), "ranks 0, 1");
  EXPECT_EQ(ranks_text({Rank{0}, Rank{1}, Rank{2}, Rank{5}}), "ranks 0-2, 5");
  EXPECT_EQ(factor_text(3), "3");
  EXPECT_EQ(factor_text(4.0 / 3), "4/3");
  EXPECT_EQ(factor_text(-0.5), "-1/2");
  EXPECT_EQ(factor_text(0.123456789), "0.1235");
}

TEST(Report, TheFirstFindingIsASentence) {
  Finding finding{.step = 1, .what = "first.weight", .cause = Cause::scaled, .ranks = {Rank{0}, Rank{1}, Rank{2}}};
  finding.factor = 3;
  finding.hint = verifying::hint_for(finding, 3, 1);
  finding.error = 2;
  finding.bound = 1e-15;
  EXPECT_EQ(finding.sentence(),
            "step 1: first.weight is scaled by 3 (on ranks 0-2): contributions were added up and not divided by their "
            "number");
  VerifyReport report{.mesh = "dp=3", .ranks = 3, .group = 3, .steps = 2, .parameters = 2, .elements = 11};
  EXPECT_TRUE(report.ok());
  EXPECT_THAT(report.text(), HasSubstr("verify: PASS: 3 ranks (dp=3), 2 steps, 2 parameters of 11 elements"));
  report.findings.push_back(finding);
  finding.what = "first.bias";
  report.findings.push_back(finding);
  EXPECT_THAT(report.text(), HasSubstr("verify: FAIL"));
  EXPECT_THAT(report.text(), HasSubstr(report.findings[0].sentence()));
  EXPECT_THAT(report.text(), HasSubstr("the same: first.bias"));
  EXPECT_THAT(report.json(), HasSubstr("\"cause\": \"scaled\""));
  EXPECT_EQ(conclude(report, Rank{1}), 1);
}

TEST(Report, EveryCauseHasANameAndAHint) {
  for (int i = 0; i <= static_cast<int>(Cause::unknown); ++i) {
    const auto cause = static_cast<Cause>(i);
    EXPECT_FALSE(to_string(cause).empty());
    EXPECT_EQ(to_string(cause) == "unknown", cause == Cause::unknown) << i;
    EXPECT_FALSE(verifying::hint_for({.cause = cause}, 2, 1).empty()) << to_string(cause);
  }
}

}  // namespace
}  // namespace tutti
