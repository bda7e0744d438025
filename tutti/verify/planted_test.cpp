// Bugs that are planted on purpose: all of them are found, and nearly all by their name.

#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tutti/comm/world.h"
#include "tutti/verify/division.h"
#include "tutti/verify/test_bugs.h"

namespace tutti {
namespace {

struct Case {
  const Bug& bug;
  std::string mesh;
  KitOptions kit;
};

int ranks_of(const std::string& mesh) {
  int count = 1;
  for (std::size_t i = 0; i < mesh.size(); ++i) {
    count *= mesh[i] == '=' ? mesh[i + 1] - '0' : 1;
  }
  return count;
}

/// Of all ranks, which have the same.
VerifyReport run_case(const Case& one, Rank victim) {
  std::vector<VerifyReport> reports(static_cast<std::size_t>(ranks_of(one.mesh)));
  run_ranks(ranks_of(one.mesh), [&](World& world) {
    const auto mesh = world.mesh(one.mesh);
    const auto group = mesh.slice(verifying::averaged_axes(mesh, one.bug.options)).group();
    auto options = one.bug.options;
    options.rows.assign(one.bug.rows_each.begin(), one.bug.rows_each.begin() + group.size());
    const auto total = std::accumulate(options.rows.begin(), options.rows.end(), std::int64_t{0});
    const auto batch = make_rows(one.kit, total);
    const auto factory = [&](const Mesh& where, Role role) {
      auto own = one.kit;
      for (const auto& axis : where.axes()) {
        own.seed += axis.name == "tp" ? 100 * where.coordinate("tp") : 0;  // another part of the model
      }
      const auto kit = make_kit(own);
      Trainee trainee{.module = kit.module, .loss = kit.loss};
      if (role == Role::together) {
        const Plot plot{where, group, victim, world.rank() == victim, kit, batch, options, one.kit.seed};
        trainee.synchronize = [kit, group] {
          for (auto& parameter : kit.module->parameters()) {
            group.all_reduce(parameter.mutable_grad(), ReduceOp::avg).wait();
          }
        };
        one.bug.plant(trainee, plot);
      }
      return trainee;
    };
    reports[to_index(world.rank())] = verify(factory, batch, mesh, options);
  });
  for (const auto& report : reports) {
    EXPECT_EQ(report.json(), reports[0].json()) << one.bug.name;
  }
  return reports[0];
}

bool is_right(const Case& one, const VerifyReport& report, Rank victim) {
  const auto& first = report.findings.front();
  const auto& bug = one.bug;
  const auto has = [](const auto& list, const auto& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  const auto names = make_kit(one.kit).module->named_parameters().keys();
  const auto& planted = names[static_cast<std::size_t>(one.kit.seed) % names.size()];
  const int group = one.mesh.find("tp") == std::string::npos ? ranks_of(one.mesh) : ranks_of(one.mesh) / 2;
  return has(bug.causes, first.cause) && (!bug.names_victim || has(first.blamed, victim)) &&
         (!bug.names_parameter || (first.what == planted && report.findings.size() == 1)) &&
         (bug.detail.empty() || bug.detail == first.detail) &&
         (!bug.factor || std::abs(first.factor - bug.factor(group)) < 1e-4);
}

struct Count {
  int cases = 0;
  int found = 0;
  int right = 0;

  Count& operator+=(const Count& other) {
    cases += other.cases;
    found += other.found;
    right += other.right;
    return *this;
  }
};

void show(const std::string& name, const Count& count) {
  fmt::print("{:42} {:5} {:5} {:5}\n", name, count.cases, count.found, count.right);
}

Count plant(const Case& one) {
  const auto victim = Rank{one.kit.seed % ranks_of(one.mesh)};
  const auto report = run_case(one, victim);
  const bool right = !report.ok() && is_right(one, report, victim);
  EXPECT_FALSE(report.ok()) << one.bug.name << " on " << one.mesh << " " << one.kit.model;
  if (!report.ok() && !right) {
    fmt::print("not right: {} on {} {}, victim {}:\n{}", one.bug.name, one.mesh, one.kit.model, to_int(victim),
               report.text());
  }
  return {.cases = 1, .found = report.ok() ? 0 : 1, .right = right ? 1 : 0};
}

// --gtest_random_seed=N for other numbers.
TEST(Planted, EveryBugIsFoundAndNearlyEveryOneNamed) {
  torch::set_num_threads(1);
  Count all;
  fmt::print("{:42} cases found right\n", "kind");
  for (const auto& bug : all_bugs()) {
    Count count;
    for (const auto& mesh : bug.meshes) {
      for (const auto& model : bug.models) {
        for (const auto dtype : {torch::kDouble, torch::kFloat}) {
          const int seed = 1 + count.cases + 100 * GTEST_FLAG_GET(random_seed);
          count += plant({bug, mesh, {.model = model, .seed = seed, .dtype = dtype}});
        }
      }
    }
    show(bug.name, count);
    all += count;
  }
  show(fmt::format("{} kinds", all_bugs().size()), all);
  EXPECT_GE(all_bugs().size(), 20U);
  EXPECT_GE(all.cases, 200);
  EXPECT_EQ(all.found, all.cases);
  EXPECT_GE(all.right, 0.95 * all.cases);
}

}  // namespace
}  // namespace tutti
