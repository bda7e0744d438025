#include "tutti/gradient/test_ranks.h"

#include <numeric>
#include <optional>

#include <gtest/gtest.h>

#include "tutti/comm/world.h"

namespace tutti {
namespace {

/// The job that this program was started for, if any; all ranks leave it together.
class Job : public testing::Environment {
 public:
  void SetUp() override {
    world_ = init();
    if (world_->size() == 1) {
      world_.reset();
    }
  }
  void TearDown() override {
    if (world_) {
      world_->group().barrier().wait();
      world_.reset();
    }
  }
  const std::optional<World>& world() const { return world_; }

 private:
  std::optional<World> world_;
};

const auto* const kJob = static_cast<Job*>(testing::AddGlobalTestEnvironment(new Job));

std::vector<Rank> first_ranks(int count) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < count; ++rank) {
    ranks.push_back(Rank{rank});
  }
  return ranks;
}

}  // namespace

void on_ranks(int count, const std::function<void(Group&)>& function) {
  if (!kJob->world()) {
    run_ranks(count, function);
    return;
  }
  if (count > kJob->world()->size()) {
    GTEST_SKIP() << "the job has fewer than " << count << " ranks";
  }
  auto group = kJob->world()->group().subgroup(first_ranks(count));
  if (!group) {
    return;
  }
  try {
    function(*group);
  } catch (...) {
    group->abort();  // or the others would wait for this rank
    throw;
  }
}

}  // namespace tutti
