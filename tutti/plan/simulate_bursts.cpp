// Links that save up bandwidth while nothing crosses them, and let as many bytes pass at once; and plans that run again
// and again.
#include <algorithm>
#include <functional>

#include "tutti/plan/simulation.h"

namespace tutti::plan {

void Simulation::fill(std::uint32_t link) {
  auto& bucket = buckets_[link];
  const auto idle = activities_.now() - activities_.busy(link);
  bucket.bytes = std::min(fabric_.burst(link), bucket.bytes + (idle - bucket.idle) * fabric_.bandwidth(link));
  bucket.idle = idle;
}

double Simulation::spend(const Fabric::Path& path, double bytes) {
  auto passes = bytes;
  bool any = false;
  for (const auto link : path.crossed()) {
    if (fabric_.burst(link) > 0) {
      fill(link);
      passes = std::min(passes, buckets_[link].bytes);
      any = true;
    }
  }
  if (!any) {
    return 0;
  }
  for (const auto link : path.crossed()) {
    buckets_[link].bytes -= fabric_.burst(link) > 0 ? passes : 0;
  }
  return passes;
}

Simulation::Savings Simulation::saved() {
  Savings all;
  for (std::uint32_t link = 0; link < fabric_.links(); ++link) {
    fill(link);
    all.push_back(buckets_[link].bytes);
  }
  return all;
}

namespace {

/// When each host begins the next run, once one has gone like that: when its ranks and the others have come and met.
std::vector<double> next_begins(const Simulated& run, const Fabric& fabric) {
  std::vector<double> ends(fabric.hosts(), 0);
  for (std::size_t rank = 0; rank < run.ends.size(); ++rank) {
    auto& end = ends[fabric.host_of(to_rank(rank))];
    end = std::max(end, run.ends[rank] - fabric.meeting());
  }
  auto sorted = ends;
  std::ranges::sort(sorted, std::greater());
  std::vector<double> begins;
  for (const auto end : ends) {
    const auto near = end + fabric.meeting(1);
    const auto others = end == sorted[0] && sorted.size() > 1 ? sorted[1] : sorted[0];
    begins.push_back(sorted.size() == 1 ? near : std::max(near, others + fabric.meeting()));
  }
  return begins;
}

/// A run among others.
struct Run {
  Simulated simulated;
  Simulation::Savings left;    // on links
  std::vector<double> begins;  // by host, of the next one
  double seconds = 0;          // from the last host's beginning of this one to that of the next
};

class Runs {
 public:
  Runs(const Plan& plan, std::size_t bytes_of_block, const Fabric& fabric, bool in_a_row)
      : plan_(plan), bytes_(bytes_of_block), fabric_(fabric), in_a_row_(in_a_row && fabric.hosts() > 1) {}

  /// One that is like those before it.
  Result<Run> steady() const {
    Simulation::Savings full;
    for (std::uint32_t link = 0; link < fabric_.links(); ++link) {
      full.push_back(fabric_.burst(link));
    }
    auto first = after(full, {});
    if (!first) {
      return first;
    }
    // A link that is not full again when ranks have met for the next run has nothing left after enough of them.
    auto saved = first.value().left;
    bool enough = true;
    for (std::uint32_t link = 0; link < fabric_.links(); ++link) {
      if (saved[link] + fabric_.meeting() * fabric_.bandwidth(link) < full[link]) {
        saved[link] = 0;
        enough = false;
      }
    }
    if (enough) {
      return in_a_row_ ? after(full, first.value().begins) : first;
    }
    const auto without = after(saved, first.value().begins);
    return without ? after(without.value().left, without.value().begins) : first;
  }

 private:
  Result<Run> after(const Simulation::Savings& saved, std::vector<double> begins) const {
    if (!in_a_row_ || begins.empty()) {
      begins.assign(fabric_.hosts(), 0);
    }
    const auto [least, most] = std::ranges::minmax(begins);
    for (auto& begin : begins) {
      begin -= least;
    }
    Simulation simulation(plan_, bytes_, fabric_, saved, begins);
    auto simulated = simulation.run();
    if (!simulated) {
      return simulated.error();
    }
    auto next = next_begins(simulated.value(), fabric_);
    const auto seconds = std::ranges::max(next) - (most - least);
    return Run{std::move(simulated).value(), simulation.saved(), std::move(next), seconds};
  }

  const Plan& plan_;
  std::size_t bytes_;
  const Fabric& fabric_;
  bool in_a_row_;
};

}  // namespace

Result<Simulated> simulate_again(const Plan& plan, std::size_t bytes_of_block, const Fabric& fabric) {
  auto run = Runs(plan, bytes_of_block, fabric, false).steady();
  return run ? Result<Simulated>(std::move(run.value().simulated)) : run.error();
}

Result<double> seconds_in_a_row(const Plan& plan, std::size_t bytes_of_block, const Network& network) {
  if (auto good = check(network, plan.shape.ranks); !good) {
    return good.error();
  }
  const Fabric fabric(network, plan.shape.ranks);
  const auto run = Runs(plan, bytes_of_block, fabric, true).steady();
  return run ? Result<double>(run.value().seconds) : run.error();
}

}  // namespace tutti::plan
