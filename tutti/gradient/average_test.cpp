#include "tutti/gradient/average.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/gradient/test_models.h"
#include "tutti/gradient/test_ranks.h"

namespace tutti {
namespace {

torch::Tensor rows_of(int rank) { return rows(rank * 3, rank * 3 + 3); }

class AverageTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Ranks, AverageTest, testing::Values(1, 2, 3, 4));

TEST_P(AverageTest, GradientsAreThoseOfOneProcess) {
  for (const bool later : {false, true}) {
    on_ranks(GetParam(), [later](Group& group) {
      Net net(1);
      Net reference(1);
      const auto loss = [&](Net& of, int rank) {
        // Only rank 0 has a gradient of `spare` to offer.
        return mean_loss(of->forward(rows_of(rank))) +
               (rank == 0 ? mean_loss(of->other_way(rows_of(0))) : torch::zeros({}, torch::kDouble));
      };
      loss(net, to_int(group.rank())).backward();
      for (int rank = 0; rank < group.size(); ++rank) {
        (loss(reference, rank) / group.size()).backward();
      }
      const AverageOptions options{.bucket_bytes = 100};
      if (later) {
        start_averaging_gradients(*net, group, options).wait();
      } else {
        average_gradients(net->parameters(), group, options);
      }
      expect_same_gradients(*net, *reference);
    });
  }
}

TEST(Average, WhatNobodyHasStaysAway) {
  on_ranks(2, [](Group& group) {
    Net net(1);
    mean_loss(net->forward(rows_of(0))).backward();
    average_gradients(*net, group);
    EXPECT_FALSE(net->spare->weight.grad().defined());
    EXPECT_TRUE(net->first->weight.grad().defined());
  });
}

TEST(Average, SparseGradientsBecomeDense) {
  on_ranks(2, [](Group& group) {
    torch::nn::Embedding table(torch::nn::EmbeddingOptions(5, 3).sparse(true));
    table(torch::tensor({to_int(group.rank())})).sum().backward();
    ASSERT_TRUE(table->weight.grad().is_sparse());
    average_gradients(*table, group);
    EXPECT_TRUE(torch::equal(table->weight.grad().sum(1), torch::tensor({1.5F, 1.5F, 0.F, 0.F, 0.F})));
  });
}

TEST(Average, NamesTheGradientAndTheRanksThatDiffer) {
  on_ranks(3, [](Group& group) {
    auto weight = torch::ones({3, group.rank() == Rank{1} ? 5 : 4});
    weight.mutable_grad() = torch::full_like(weight, 7);
    try {
      average_gradients({torch::ones({2}), weight}, group);
      ADD_FAILURE() << "accepted";
    } catch (const Exception& error) {
      EXPECT_EQ(error.code(), Code::mismatch);
      EXPECT_THAT(error.error().message, testing::HasSubstr("gradient '#1' float32 [3, 4]"));
      EXPECT_THAT(error.error().message, testing::HasSubstr("'#1' float32 [3, 5]"));
      EXPECT_THAT(error.error().message, testing::HasSubstr("on rank 1"));
    }
    EXPECT_TRUE(torch::equal(weight.grad(), torch::full_like(weight, 7)));
  });
}

/// The gradient of a rank is its number: the average tells whom it was averaged with.
double averaged(const Mesh& mesh, Rank rank, const AverageOptions& options, const char* of) {
  torch::nn::Linear net(1, 1);
  for (auto& parameter : net->parameters()) {
    parameter.mutable_grad() = torch::full_like(parameter, to_int(rank));
  }
  average_gradients(*net, mesh, options);
  return net->named_parameters()[of].grad().item<double>();
}

TEST(Average, OverDpAndCpAndNeverOverTp) {
  on_ranks(8, [](Group& group) {
    const Mesh mesh(group, "dp=2,cp=2,tp=2");
    const auto rank = to_int(group.rank());
    const double tp = rank % 2;
    const double all = 3 + tp;                      // of 0, 2, 4, 6, or of 1, 3, 5, 7
    const double along_cp = rank / 4 * 4 + 1 + tp;  // of two with the same dp
    EXPECT_EQ(averaged(mesh, group.rank(), {}, "weight"), all);
    EXPECT_EQ(averaged(mesh["cp"], group.rank(), {}, "weight"), along_cp);
    const AverageOptions divided{.sharded = {{"weight", {"dp"}}}};
    EXPECT_EQ(averaged(mesh, group.rank(), divided, "weight"), along_cp);
    EXPECT_EQ(averaged(mesh, group.rank(), divided, "bias"), all);
    EXPECT_EQ(averaged(mesh, group.rank(), {.sharded = {{"*", {"dp", "cp"}}}}, "bias"), rank);
    EXPECT_THROW(averaged(mesh["tp"], group.rank(), {}, "weight"), Exception);
  });
}

}  // namespace
}  // namespace tutti
