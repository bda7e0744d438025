#include "tutti/gradient/step_report.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti {

std::size_t StepReport::bytes() const {
  std::size_t sum = 0;
  for (const auto& bucket : buckets) {
    sum += bucket.bytes;
  }
  return sum;
}

std::chrono::duration<double> StepReport::communication() const {
  // Buckets are started one after the other, and overlap.
  Clock::duration sum{0};
  auto until = Clock::time_point::min();
  for (const auto& bucket : buckets) {
    sum += std::max(Clock::duration{0}, bucket.reduced - std::max(until, bucket.started));
    until = std::max(until, bucket.reduced);
  }
  return sum;
}

std::string StepReport::text() const {
  const auto milliseconds = [](std::chrono::duration<double> time) { return time.count() * 1e3; };
  return fmt::format("step {}: {} buckets, {:.1f} MB, {:.1f} of them in place, {:.2f} ms under way, {:.2f} ms exposed",
                     step, buckets.size(), static_cast<double>(bytes()) / 1e6, static_cast<double>(in_place) / 1e6,
                     milliseconds(communication()), milliseconds(exposed()));
}

}  // namespace tutti
