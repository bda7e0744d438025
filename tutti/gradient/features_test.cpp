// Every feature on and off, for three kinds of models: gradients are those of one process.

#include <gtest/gtest.h>

#include "tutti/gradient/batch_norm.h"
#include "tutti/gradient/data_parallel.h"
#include "tutti/gradient/hook.h"
#include "tutti/gradient/test_models.h"
#include "tutti/gradient/test_ranks.h"

namespace tutti {
namespace {

/// A model, and the mean loss of samples `from` to `to`.
struct Trainee {
  std::shared_ptr<torch::nn::Module> module;
  std::function<torch::Tensor(std::int64_t from, std::int64_t to)> loss;
};

Trainee make_mlp() {
  Net net(1);
  return {net.ptr(), [net](auto from, auto to) mutable { return mean_loss(net->forward(rows(from, to))); }};
}

Trainee make_cnn() {
  Cnn cnn;
  return {cnn.ptr(), [cnn](auto from, auto to) mutable { return picture_loss(cnn->forward(pictures(from, to))); }};
}

Trainee make_gpt() {
  Gpt gpt;
  return {gpt.ptr(), [gpt](auto from, auto to) mutable { return text_loss(gpt, texts(from, to)); }};
}

struct Model {
  const char* name;
  Trainee (*make)();
};

struct Features {
  bool small_buckets = false;
  bool accumulates = false;
  bool uneven_data = false;
  bool hook = false;
  bool zeroes_in_place = false;
  Mean mean = Mean::per_rank;
  Reduction reduction = Reduction::usual;
};

/// Those that change what is sent in all combinations, the others with each of these.
std::vector<Features> all_features() {
  std::vector<Features> all;
  for (const bool small_buckets : {false, true}) {
    for (const bool accumulates : {false, true}) {
      for (const auto mean : {Mean::per_rank, Mean::per_sample}) {
        const Features one{.small_buckets = small_buckets, .accumulates = accumulates, .mean = mean};
        const auto with = [&](auto change) {
          all.push_back(one);
          change(all.back());
        };
        with([](Features&) {});
        with([](Features& other) { other.reduction = Reduction::reproducible; });
        with([](Features& other) { other.uneven_data = true; });
        with([](Features& other) { other.hook = true; });
        with([](Features& other) {
          other.zeroes_in_place = true;
          other.reduction = Reduction::reproducible;
          other.uneven_data = true;
        });
      }
    }
  }
  return all;
}

DataParallelOptions options_for(const Features& features) {
  DataParallelOptions options{.mean = features.mean,
                              .buffers = Buffers::leave,
                              .uneven_data = features.uneven_data,
                              .reduction = features.reduction};
  if (features.small_buckets) {
    options.bucket_bytes = 200;
    options.first_bucket_bytes = 60;
  }
  options.hook = features.hook ? all_reduce_hook() : nullptr;
  return options;
}

/// Two samples for each rank and microbatch.
void check(const Model& model, const Features& features, Group& group) {
  auto mine = model.make();
  auto reference = model.make();
  synchronize_batch_norm(*mine.module, group);
  DataParallel parallel(mine.module, group, options_for(features));
  const std::int64_t rank = to_int(group.rank());
  const int microbatches = features.accumulates ? 2 : 1;
  const bool weighed = features.mean == Mean::per_sample;
  for (int step = 0; step < 2; ++step) {
    mine.module->zero_grad(!features.zeroes_in_place);
    reference.module->zero_grad(!features.zeroes_in_place);
    for (int i = 0; i < microbatches; ++i) {
      std::optional<DataParallelBase::Pause> pause;
      if (i + 1 < microbatches) {
        pause.emplace(parallel.no_sync());
      }
      const auto first = i * group.size() * 2;  // of all ranks
      const auto loss = mine.loss(first + rank * 2, first + rank * 2 + 2);
      (weighed ? parallel.weigh(loss, 2) : loss).backward();
      const auto whole = reference.loss(first, first + group.size() * 2);
      (weighed ? whole / microbatches : whole).backward();
    }
    expect_same_gradients(*mine.module, *reference.module, std::string(model.name) + " in step " + std::to_string(step),
                          1);
  }
}

class FeaturesTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, FeaturesTest, testing::Values(1, 2, 3, 4));

TEST_P(FeaturesTest, EachOnAndOff) {
  for (const auto& model : {Model{"MLP", make_mlp}, Model{"CNN", make_cnn}, Model{"GPT", make_gpt}}) {
    on_ranks(GetParam(), [&model](Group& group) {
      int number = 0;
      for (const auto& features : all_features()) {
        SCOPED_TRACE("features " + std::to_string(number++));
        check(model, features, group);
      }
    });
  }
}

}  // namespace
}  // namespace tutti
