// What `tutti bench` runs as every rank: our own collectives, through the same Group that a user has.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <ATen/Parallel.h>

#include "bench/links.h"
#include "bench/report.h"
#include "bench/trials.h"
#include "bench/tune.h"
#include "tutti/base/environment.h"
#include "tutti/comm/world.h"

namespace {

bench::Line measure_size(bench::World& world, const bench::Options& options, const std::string& memory,
                         const bench::CollectiveTrial& trial) {
  bench::verify(world, trial);
  trial.touch();
  world.barrier();
  const auto summary = bench::measure(
      world, options, [&] { trial.run(); }, [&] { trial.touch(); });
  world.barrier();
  bench::verify(world, trial);
  return {.op = options.op,
          .ranks = world.ranks(),
          .bytes = trial.bytes,
          .dtype = options.dtype,
          .memory = memory,
          .summary = summary};
}

/// What has plans, and so something to choose from.
const std::vector<std::string> kTunable{"all_reduce",     "reduce",     "broadcast", "all_gather",
                                        "reduce_scatter", "all_to_all", "gather",    "scatter"};

int tune_main(const tutti::Group& group, const bench::Options& options, const bench::ReportOptions& report) {
  if (report.reproducible) {
    bench::fail("--tune times ordinary sums, not reproducible ones");
  }
  const auto ops = options.op == "all" ? kTunable : std::vector<std::string>{options.op};
  if (std::find(kTunable.begin(), kTunable.end(), ops.front()) == kTunable.end()) {
    bench::fail("--tune: nothing to choose from for '" + options.op + "'");
  }
  auto sizes = options.sizes;
  std::sort(sizes.begin(), sizes.end());
  const bool one_host = group.engine() != "mpi";
  return bench::tune(group, {.ops = ops,
                             // Between hosts it makes no difference where tensors lie.
                             .memories = one_host ? report.memories : std::vector<std::string>{"private"},
                             .sizes = sizes,
                             .dtype = options.dtype,
                             .seconds_per_size = options.seconds_per_size,
                             .json = report.json,
                             .file = tutti::value_or_throw(tutti::read_preferences()).tuning});
}

int bench_main(const bench::Options& options, const bench::ReportOptions& report) {
  const auto world = tutti::init();
  at::set_num_threads(1);
  if (report.tune) {
    return tune_main(world.group(), options, report);
  }
  bench::GroupWorld ranks(world.group());
  std::vector<bench::Line> lines;
  const auto sizes = options.op == "barrier" ? std::vector<std::size_t>{0} : options.sizes;
  for (const auto& memory : report.memories) {
    const bench::Trials trials(world.group(), options.dtype, memory == "symmetric", report.reproducible);
    for (const auto size : sizes) {
      lines.push_back(measure_size(ranks, options, memory, trials.make(options.op, size)));
      if (ranks.rank() == 0) {
        bench::show_progress(report, lines);
      }
    }
  }
  return ranks.rank() == 0 ? bench::finish_report(report, lines) : 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    if (bench::wants_links(count, words)) {
      return bench::links_main(count, words);
    }
    auto [report, rest] = bench::split_report_options(count, words);
    return bench_main(bench::parse_options(static_cast<int>(rest.size()), rest.data()), report);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return 1;
  }
}
