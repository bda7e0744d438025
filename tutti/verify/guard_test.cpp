#include "tutti/verify/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/comm/world.h"
#include "tutti/gradient/test_models.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Guard, EqualParametersPass) {
  run_ranks(3, [](Group& group) {
    Net net(1);
    ParameterGuard guard(*net, group, {.every = 2, .buffers = true});
    for (int step = 0; step < 7; ++step) {
      const torch::NoGradGuard no_grad;
      net->first->weight += 0.125 * step;
      guard.step();
    }
  });
}

TEST(Guard, DivergenceNamesRankParameterAndStep) {
  run_ranks(3, [](Group& group) {
    Net net(1);
    ParameterGuard guard(*net, group, {.every = 4});
    const torch::NoGradGuard no_grad;
    for (int step = 1; step < 8; ++step) {
      if (step == 5 && group.rank() == Rank{1}) {
        net->second->bias[2] += 1e-15;
      }
      guard.step();
    }
    try {
      guard.step();
      FAIL() << "a divergence was not seen";
    } catch (const Exception& error) {
      EXPECT_EQ(error.code(), Code::mismatch);
      EXPECT_EQ(error.rank(), Rank{1});
      EXPECT_THAT(error.what(), AllOf(HasSubstr("'second.bias'"), HasSubstr("rank 1"), HasSubstr("after step 8"),
                                      HasSubstr("after step 4 all were the same")));
    }
  });
}

TEST(Guard, AnotherStartIsSeenAtOnce) {
  run_ranks(2, [](Group& group) {
    const Net net(to_int(group.rank()) + 1);
    EXPECT_THROW(ParameterGuard(*net, group), Exception);
  });
}

}  // namespace
}  // namespace tutti
