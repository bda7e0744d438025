#include "tutti/gradient/batch_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/gradient/data_parallel.h"
#include "tutti/gradient/test_models.h"
#include "tutti/gradient/test_ranks.h"

namespace tutti {
namespace {

class BatchNormTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, BatchNormTest, testing::Values(1, 2, 3, 4));

void expect_same_buffers(const torch::nn::Module& module, const torch::nn::Module& reference) {
  for (const auto& item : reference.named_buffers()) {
    EXPECT_TRUE(torch::allclose(module.named_buffers()[item.key()], item.value(), 1e-12)) << item.key();
  }
}

TEST_P(BatchNormTest, AModelIsThatOfOneProcess) {
  on_ranks(GetParam(), [](Group& group) {
    Cnn net;
    Cnn reference;
    EXPECT_EQ(synchronize_batch_norm(*net, group), 3U);
    DataParallel model(net, group, {.buffers = Buffers::leave});
    torch::optim::SGD optimizer(net->parameters(), 0.01);
    torch::optim::SGD same(reference->parameters(), 0.01);
    const std::int64_t rank = to_int(group.rank());
    for (int step = 0; step < 4; ++step) {
      optimizer.zero_grad();
      same.zero_grad();
      // Every rank's loss is a mean of its own: with as many rows each, their average is the mean of all.
      picture_loss(model->forward(pictures(rank * 2, rank * 2 + 2) * (step + 1))).backward();
      picture_loss(reference->forward(pictures(0, group.size() * 2) * (step + 1))).backward();
      expect_same_gradients(*net, *reference, "in step " + std::to_string(step), 1);
      expect_same_buffers(*net, *reference);
      optimizer.step();
      same.step();
    }
    net->eval();
    reference->eval();
    EXPECT_TRUE(torch::allclose(net->forward(pictures(0, 1)), reference->forward(pictures(0, 1)), 1e-12));
  });
}

TEST_P(BatchNormTest, BatchesMayBeUnevenAndEvenEmpty) {
  on_ranks(GetParam(), [](Group& group) {
    SyncBatchNorm norm(torch::nn::BatchNormOptions(3), group);
    torch::nn::BatchNorm2d reference(torch::nn::BatchNormOptions(3));
    norm->to(torch::kDouble);
    reference->to(torch::kDouble);
    const std::int64_t rank = to_int(group.rank());
    // Of n ranks, rank r has r rows, and the last has two more; so rank 0 often has none.
    const auto begin = rank * (rank - 1) / 2;
    const auto end = begin + rank + (rank + 1 == group.size() ? 2 : 0);
    const auto last = group.size() * (group.size() - 1) / 2 + 2;
    auto all = pictures(0, last).requires_grad_();
    auto mine = pictures(begin, end).requires_grad_();
    const auto weigh = [](const torch::Tensor& y, std::int64_t row) {
      return y * drawn({11, 3, 4, 4}, 5).slice(0, row, row + y.size(0));
    };
    const auto expected = reference->forward(all);
    const auto got = norm->forward(mine);
    EXPECT_TRUE(torch::allclose(got, expected.slice(0, begin, end), 1e-10, 1e-12));
    weigh(expected, 0).sum().backward();
    weigh(got, begin).sum().backward();
    EXPECT_TRUE(torch::allclose(mine.grad(), all.grad().slice(0, begin, end), 1e-9, 1e-10));
    auto sum = norm->weight.grad().clone();
    group.all_reduce(sum).wait();
    EXPECT_TRUE(torch::allclose(sum, reference->weight.grad(), 1e-10));
    EXPECT_TRUE(torch::allclose(norm->running_var, reference->running_var, 1e-12));
  });
}

TEST(BatchNorm, AllFormsOfInputs) {
  on_ranks(2, [](Group& group) {
    const std::int64_t rank = to_int(group.rank());
    for (const auto& shape : std::vector<std::vector<std::int64_t>>{{4, 3}, {4, 3, 5}, {4, 3, 2, 2}, {4, 3, 2, 2, 2}}) {
      for (const auto type : {torch::kDouble, torch::kFloat, torch::kBFloat16}) {
        SyncBatchNorm norm(torch::nn::BatchNormOptions(3).affine(false).track_running_stats(false), group);
        const auto whole = drawn(shape, 2).to(type);
        const auto y = norm->forward(whole.slice(0, rank * 2, rank * 2 + 2));
        const auto expected = torch::batch_norm(whole.to(torch::kDouble), {}, {}, {}, {}, true, 0, 1e-5, false);
        const double exact = type == torch::kDouble ? 1e-12 : type == torch::kFloat ? 1e-5 : 0.02;
        EXPECT_EQ(y.scalar_type(), type);
        EXPECT_TRUE(torch::allclose(y.to(torch::kDouble), expected.slice(0, rank * 2, rank * 2 + 2), exact, exact));
      }
    }
    SyncBatchNorm norm(torch::nn::BatchNormOptions(3), group);
    const auto last = pictures(0, 2).to(torch::kFloat).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
    const auto y = norm->forward(last);
    EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast));
    y.square().sum().backward();
    EXPECT_THROW((void)norm->forward(torch::ones({2, 4})), Exception);
    EXPECT_THROW((void)norm->forward(torch::ones({3})), Exception);
  });
}

TEST(BatchNorm, StaysSynchronizedAfterAChangeOfType) {
  on_ranks(2, [](Group& group) {
    torch::nn::Sequential net(torch::nn::BatchNorm2d(3));
    EXPECT_EQ(synchronize_batch_norm(*net, group), 1U);
    net->to(torch::kDouble);
    const std::int64_t rank = to_int(group.rank());
    torch::nn::BatchNorm2d reference(3);
    reference->to(torch::kDouble);
    EXPECT_TRUE(torch::allclose(net->forward(pictures(rank, rank + 1)),
                                reference->forward(pictures(0, 2)).slice(0, rank, rank + 1), 1e-10, 1e-12));
  });
}

TEST(BatchNorm, WhatIsNotConvertedStaysAsItWas) {
  torch::nn::BatchNorm2d norm(3);
  norm->to(torch::kDouble);
  auto x = pictures(0, 2).requires_grad_();
  const auto y = norm->forward(x);
  EXPECT_TRUE(torch::allclose(y.mean({0, 2, 3}), torch::zeros({3}, torch::kDouble), 0, 1e-9));
  y.square().sum().backward();
  EXPECT_TRUE(x.grad().defined());
}

TEST(BatchNorm, WhatCannotBeIsRefused) {
  on_ranks(2, [](Group& group) {
    torch::nn::Sequential bare(
        torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(3).affine(false).track_running_stats(false)));
    EXPECT_THROW(synchronize_batch_norm(*bare, group), Exception);
    SyncBatchNorm norm(torch::nn::BatchNormOptions(3), group);
    // One value for each feature, on one rank: no variance.
    EXPECT_THROW((void)norm->forward(torch::ones({to_int(group.rank()), 3})), Exception);
    auto x = torch::randn({2, 3}).requires_grad_();
    const auto y = norm->forward(x).square().sum();
    EXPECT_THROW(torch::autograd::grad({y}, {x}, {}, true, true), Exception);
  });
}

}  // namespace
}  // namespace tutti
