#include "bench/links.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <string_view>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "bench/link_report.h"
#include "bench/link_timer.h"
#include "tutti/base/whole_file.h"
#include "tutti/comm/tuned.h"
#include "tutti/plan/known_network.h"
#include "tutti/plan/network_json.h"

namespace bench {
namespace {

struct LinkOptions {
  bool compare = false;
  bool json = false;
  std::string out;  // empty: the network is printed
  int rounds = 5;
  int cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));  // of a host
  Options timing = {.seconds_per_size = 0.02, .min_iterations = 3};
};

LinkOptions parse(int count, char** words) {
  LinkOptions options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const bool has_value = i + 1 < count;
    if (word == "--compare") {
      options.compare = true;
    } else if (word == "--json") {
      options.json = true;
    } else if (word == "--out" && has_value) {
      options.out = words[++i];
    } else if (word == "--rounds" && has_value) {
      options.rounds = std::max(1, number_of<int>(words[++i], word));
    } else if (word == "--cores" && has_value) {
      options.cores = number_of<int>(words[++i], word);
    } else if (word == "--seconds-per-size" && has_value) {
      options.timing.seconds_per_size = number_of<double>(words[++i], word);
    } else if (word != "--links") {
      fail(fmt::format("--links: no option '{}'", word));
    }
  }
  return options;
}

/// Where `tutti plan cost --topology here` and `tutti bench --tune` look for it. Not being able to keep it is no
/// failure.
void keep(const tutti::plan::Network& network, bool several_hosts) {
  const auto preferences = tutti::value_or_throw(tutti::read_preferences());
  const auto path = tutti::plan::network_file(preferences.tuning, tutti::this_machine(), several_hosts);
  if (path.empty()) {
    return;
  }
  const auto kept = tutti::write_whole(path, tutti::plan::to_json(network));
  std::fputs(
      kept ? fmt::format("kept in {}\n", path).c_str() : fmt::format("bench: {}\n", kept.error().message).c_str(),
      stderr);
}

/// In rounds of both, since what else a machine does comes and goes: one after the other, that would count as an error
/// of the network.
void time_all(LinkTimer& timer, const LinkOptions& options, std::initializer_list<std::vector<LinkCase>*> sets) {
  for (int round = 0; round < options.rounds; ++round) {
    for (auto* const cases : sets) {
      for (auto& one : *cases) {
        one.rounds.push_back(timer.time(one));
      }
    }
  }
  for (auto* const cases : sets) {
    for (auto& one : *cases) {
      one.settle();
    }
  }
}

int report(const LinkOptions& options, const tutti::plan::Network& network, const std::vector<LinkCase>& calibration,
           const std::vector<LinkCase>& comparison) {
  const auto known = compare(calibration, network);
  const auto others = compare(comparison, network);
  if (!options.out.empty()) {
    std::ofstream file(options.out);
    file << tutti::plan::to_json(network);
    if (!file.flush()) {
      std::fputs(fmt::format("bench: cannot write the network to {}\n", options.out).c_str(), stderr);
      return 1;
    }
  }
  if (options.json) {
    fmt::print("{}\n", to_json(network, known, others));
    return 0;
  }
  fmt::print("{}\n", table("Calibrated by", known));
  if (!others.empty()) {
    fmt::print("{}\n", table("Compared with others", others));
  }
  if (options.out.empty()) {
    fmt::print("{}", tutti::plan::to_json(network));
  }
  return 0;
}

}  // namespace

bool wants_links(int count, char** words) {
  return std::any_of(words, words + count, [](std::string_view word) { return word == "--links"; });
}

int links_main(int count, char** words) {
  const auto options = parse(count, words);
  const auto world = tutti::init();
  at::set_num_threads(1);
  LinkTimer timer(world, options.timing);
  if (world.size() == 1) {
    fail("--links: one rank has nobody to talk to");
  }
  auto calibration = calibration_cases(timer.ranks());
  auto comparison = options.compare ? comparison_cases(timer.ranks()) : std::vector<LinkCase>();
  time_all(timer, options, {&calibration, &comparison});
  constexpr const char* kOver = "bench/links/over";
  if (world.rank() != tutti::Rank{0}) {
    // Rank 0 now computes for minutes. Who left a job of MPI's meanwhile would wait for it in MPI_Finalize, in vain.
    world.store()->wait({kOver}, std::chrono::minutes(30));
    return 0;
  }
  std::vector<tutti::plan::TimedPlan> timed;
  for (const auto& one : calibration) {
    timed.push_back(one.plan);
  }
  const auto network = tutti::plan::calibrate(guess_network(timer.ranks(), options.cores), timed);
  if (!network) {
    fail(network.error().message);
  }
  keep(network.value(), timer.ranks().hosts > 1);
  const int code = report(options, network.value(), calibration, comparison);
  world.store()->set(kOver, std::string("yes"));
  return code;
}

}  // namespace bench
