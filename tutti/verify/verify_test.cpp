#include "tutti/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/comm/world.h"
#include "tutti/gradient/average.h"
#include "tutti/gradient/batch_norm.h"
#include "tutti/gradient/hook.h"
#include "tutti/verify/test_kits.h"

namespace tutti {
namespace {

/// One way to train rightly.
struct Way {
  std::string name;
  VerifyOptions options = {};
  std::string mesh = "";                ///< by DataParallel along dp when empty; otherwise by hand, on that mesh
  std::vector<std::int64_t> rows = {};  ///< by rank; three each when empty
  bool frozen = false;
  bool adam = false;
  std::optional<torch::Dtype> sent = std::nullopt;
};

std::vector<Way> ways() {
  return {
      {.name = "usual"},
      {.name = "small buckets", .options = {.data_parallel = {.bucket_bytes = 100, .first_bucket_bytes = 50}}},
      {.name = "microbatches", .options = {.microbatches = 3}},
      {.name = "frozen", .frozen = true},
      {.name = "uneven rows", .options = {.data_parallel = {.mean = Mean::per_sample}}, .rows = {5, 2, 3, 1}},
      {.name = "uneven rows in microbatches",
       .options = {.microbatches = 2, .data_parallel = {.mean = Mean::per_sample}},
       .rows = {5, 2, 3, 4}},
      {.name = "each pass counts", .options = {.microbatches = 3, .data_parallel = {.mean = Mean::per_pass}}},
      {.name = "bfloat16 sent", .options = {.precision = 0x1p-8}, .sent = torch::kBFloat16},
      {.name = "float16 sent", .options = {.precision = 0x1p-11}, .sent = torch::kHalf},
      {.name = "reproducible",
       .options = {.microbatches = 3, .data_parallel = {.mean = Mean::per_pass, .reduction = Reduction::reproducible}}},
      {.name = "gradients copied", .options = {.data_parallel = {.in_place = false}}},
      {.name = "buffers averaged", .options = {.data_parallel = {.buffers = Buffers::average}}},
      {.name = "another optimizer", .adam = true},
      {.name = "by hand", .mesh = "dp"},
      {.name = "by hand over dp and cp", .mesh = "dp=2,cp=2"},
      {.name = "by hand beside tp", .mesh = "tp=2,dp=2"},
  };
}

VerifyReport run_way(const Way& way, int ranks, const KitOptions& kit_options) {
  VerifyReport result;
  run_ranks(ranks, [&](World& world) {
    const auto mesh = world.mesh(way.mesh.find('=') != std::string::npos ? way.mesh : "dp=*");
    auto options = way.options;
    if (way.sent) {
      options.data_parallel.hook = cast_hook(*way.sent);  // one for each rank
    }
    options.rows.assign(way.rows.begin(), way.rows.empty() ? way.rows.end() : way.rows.begin() + ranks);
    std::int64_t total = way.rows.empty() ? 3 * ranks : 0;
    for (const auto count : options.rows) {
      total += count;
    }
    const auto batch = make_rows(kit_options, total);
    const auto factory = [&](const Mesh& where, Role role) {
      auto own = kit_options;
      own.seed += way.mesh.starts_with("tp") ? 100 * where.coordinate("tp") : 0;
      const auto kit = make_kit(own);
      if (way.frozen) {
        kit.module->parameters()[1].set_requires_grad(false);
      }
      Trainee trainee{.module = kit.module, .loss = kit.loss};
      if (role == Role::together && way.mesh.empty()) {
        trainee = verifying::data_parallel_trainee(kit.module, kit.loss, where, options);
      } else if (role == Role::together) {
        trainee.synchronize = [kit, where] { average_gradients(*kit.module, where); };
      }
      if (way.adam) {
        const auto optimizer = std::make_shared<torch::optim::Adam>(kit.module->parameters(), 0.01);
        trainee.step = [optimizer] { optimizer->step(); };
      }
      return trainee;
    };
    const auto report = verify(factory, batch, mesh, options);
    if (world.rank() == Rank{0}) {
      result = report;
    }
  });
  return result;
}

TEST(Verify, WhatIsRightRaisesNoAlarm) {
  torch::set_num_threads(1);
  int runs = 0;
  for (const auto& way : ways()) {
    for (const int ranks : {2, 3, 4}) {
      if (way.mesh.find('=') != std::string::npos && ranks != 4) {
        continue;
      }
      for (const auto* const model : {"mlp", "cnn", "gpt"}) {
        for (const auto dtype : {torch::kDouble, torch::kFloat}) {
          const auto report = run_way(way, ranks, {.model = model, .seed = ++runs, .dtype = dtype});
          EXPECT_TRUE(report.ok()) << way.name << ", " << ranks << " ranks, " << model << " " << dtype << "\n"
                                   << report.text();
        }
      }
    }
  }
  std::printf("%d clean runs\n", runs);
  EXPECT_GE(runs, 200);
}

torch::Tensor loss_of(Net& net, const Rows& rows) { return mean_loss(net->forward(rows[0])); }

TEST(Verify, AModelAndALossAreEnough) {
  run_ranks(3, [](World& world) {
    const auto report = verify([] { return Net(1); }, loss_of, {rows(0, 11)}, world.mesh("dp=*"),
                               {.dtype = torch::kFloat64, .data_parallel = {.mean = Mean::per_sample}});
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(report.steps, 3);
    EXPECT_EQ(report.parameters, 6U);
    EXPECT_LE(report.closeness, 1);
    EXPECT_NEAR(report.losses[2].together, report.losses[2].alone, 1e-12);
  });
}

TEST(Verify, WhatRowsWeighIsNotWhatRanksDo) {
  run_ranks(3, [](World& world) {
    const auto report = verify([] { return Net(1); }, loss_of, {rows(0, 11)}, world.mesh("dp=*"));
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.findings[0].what, "first.weight");
    EXPECT_EQ(report.findings[0].cause, Cause::weighted);
    EXPECT_EQ(report.findings[0].detail, "mean of means");
  });
}

TEST(Verify, WhereRowsDependOnEachOtherTheWholeBatchIsRight) {
  run_ranks(3, [](World& world) {
    const KitOptions kit_options{.model = "norm"};
    const auto batch = make_rows(kit_options, 12);
    const auto factory = [&](const Mesh&, Role role) {
      const auto kit = make_kit(kit_options);
      Trainee trainee{.module = kit.module, .loss = kit.loss};
      if (role == Role::together) {
        // As a batch norm that is synchronized does: every rank has the gradient of all rows.
        trainee.backward = [kit, batch](const Rows&) {
          auto loss = kit.loss(batch);
          loss.backward();
          return loss;
        };
      }
      return trainee;
    };
    const auto report = verify(factory, batch, world.mesh("dp=3"));
    EXPECT_TRUE(report.ok()) << report.text();
  });
}

TEST(Verify, ASynchronizedBatchNormRaisesNoAlarm) {
  for (const int ranks : {2, 3, 4}) {
    run_ranks(ranks, [](World& world) {
      const KitOptions kit_options{.model = "norm"};
      const VerifyOptions options{.data_parallel = {.mean = Mean::per_sample}};
      // Uneven: three rows for each rank and one more for the first.
      const auto batch = make_rows(kit_options, 3 * world.size() + 1);
      const auto factory = [&](const Mesh& where, Role role) {
        const auto kit = make_kit(kit_options);
        if (role == Role::alone) {
          return Trainee{.module = kit.module, .loss = kit.loss};
        }
        EXPECT_EQ(synchronize_batch_norm(*kit.module, where.group()), 1U);
        return verifying::data_parallel_trainee(kit.module, kit.loss, where, options);
      };
      const auto report = verify(factory, batch, world.mesh("dp=*"), options);
      EXPECT_TRUE(report.ok()) << report.text();
    });
  }
}

TEST(Verify, SaysWhatCannotBe) {
  run_ranks(2, [](World& world) {
    const auto make = [] { return Net(1); };
    EXPECT_THROW(verify(make, loss_of, {rows(0, 4)}, world.mesh("tp=2")), Exception);
    EXPECT_THROW(verify(make, loss_of, {rows(0, 4), rows(0, 3)}, world.mesh("dp=2")), Exception);
    EXPECT_THROW(verify(make, loss_of, {rows(0, 1)}, world.mesh("dp=2")), Exception);
    EXPECT_THROW(verify(make, loss_of, {rows(0, 4)}, world.mesh("dp=2"), {.rows = {2, 3}}), Exception);
  });
}

TEST(Verify, RanksWithOtherModelsAreNamed) {
  run_ranks(2, [](World& world) {
    const auto factory = [&](const Mesh&, Role) {
      nn::Linear net(5, 2 + to_int(world.rank()));
      return Trainee{.module = net.ptr(), .loss = [net](const Rows& some) mutable { return mean_loss(net(some[0])); }};
    };
    try {
      verify(factory, {rows(0, 4).to(torch::kFloat)}, world.mesh("dp=2"));
      FAIL() << "models differ";
    } catch (const Exception& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("'weight' float32 [2, 5] where rank 1 has 'weight' float32 [3, 5]"));
    }
  });
}

}  // namespace
}  // namespace tutti
