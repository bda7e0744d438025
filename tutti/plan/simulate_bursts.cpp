// Links that save up bandwidth while nothing crosses them, and let as many bytes pass at once.
#include <algorithm>

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

Result<Simulated> simulate_again(const Plan& plan, std::size_t bytes_of_block, const Fabric& fabric) {
  Simulation::Savings full;
  for (std::uint32_t link = 0; link < fabric.links(); ++link) {
    full.push_back(fabric.burst(link));
  }
  Simulation first(plan, bytes_of_block, fabric, full);
  auto result = first.run();
  if (!result || std::ranges::all_of(full, [](double bytes) { return bytes == 0; })) {
    return result;
  }
  // A link that is not full again when ranks have met for the next run has nothing left after enough of them.
  auto saved = first.saved();
  bool enough = true;
  for (std::uint32_t link = 0; link < fabric.links(); ++link) {
    if (saved[link] + fabric.meeting() * fabric.bandwidth(link) < full[link]) {
      saved[link] = 0;
      enough = false;
    }
  }
  if (enough) {
    return result;
  }
  Simulation without(plan, bytes_of_block, fabric, saved);
  return without.run() ? Simulation(plan, bytes_of_block, fabric, without.saved()).run() : result;
}

}  // namespace tutti::plan
