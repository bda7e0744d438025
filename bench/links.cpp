#include "bench/links.h"

#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <thread>

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

constexpr int kMostRounds = 1000000;
constexpr int kMostCores = 1 << 20;

struct LinkOptions {
  bool compare = false;
  bool json = false;
  std::string out;     // empty: the network is printed
  std::string record;  // empty: the network is looked for at once
  std::string from;    // empty: plans are timed
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
    } else if (word == "--record" && has_value) {
      options.record = words[++i];
    } else if (word == "--from" && has_value) {
      options.from = words[++i];
    } else if (word == "--rounds" && has_value) {
      options.rounds = number_in<int>(words[++i], word, 1, kMostRounds);
    } else if (word == "--cores" && has_value) {
      options.cores = number_in<int>(words[++i], word, 1, kMostCores);
    } else if (word == "--seconds-per-size" && has_value) {
      options.timing.seconds_per_size = seconds_of(words[++i], word);
    } else if (word != "--links") {
      fail(fmt::format("--links: no option '{}'", word));
    }
  }
  return options;
}

/// Where `tutti plan cost --topology here` and `tutti bench --tune` look for it. Not being able to keep it is no
/// failure.
void keep(const tutti::plan::Network& network, const Recording& recording) {
  const auto preferences = tutti::value_or_throw(tutti::read_preferences());
  const auto path = tutti::plan::network_file(preferences.tuning, recording.machine, recording.ranks.hosts > 1);
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

/// Every rank calls it; what it gives is the first one's.
Recording record(const tutti::World& world, const LinkOptions& options) {
  LinkTimer timer(world, options.timing);
  if (world.size() == 1) {
    fail("--links: one rank has nobody to talk to");
  }
  Recording recording{.machine = tutti::this_machine(), .ranks = timer.ranks(), .cores_of_host = options.cores};
  recording.calibration = calibration_cases(recording.ranks);
  if (options.compare) {
    recording.comparison = comparison_cases(recording.ranks);
  }
  time_all(timer, options, {&recording.calibration, &recording.comparison});
  return recording;
}

/// Takes minutes.
tutti::Result<tutti::plan::Network> network_of(const Recording& recording) {
  std::vector<tutti::plan::TimedPlan> timed;
  for (const auto& one : recording.calibration) {
    timed.push_back(one.plan);
  }
  return tutti::plan::calibrate(guess_network(recording.ranks, recording.cores_of_host), timed);
}

/// What the program exits with. Where others wait for rank 0 it must not end at once: it would count as lost.
int complain(const tutti::Error& error) {
  std::fputs(fmt::format("bench: {}\n", error.message).c_str(), stderr);
  return 2;
}

/// Before anything is timed or computed, which takes minutes.
tutti::Status can_write(const LinkOptions& options) {
  for (const auto& path : {options.out, options.record}) {
    if (!path.empty()) {
      if (auto good = tutti::can_write_whole(path); !good) {
        return good;
      }
    }
  }
  return {};
}

int find_and_tell(const Recording& recording, const LinkOptions& options) {
  const auto found = network_of(recording);
  if (!found) {
    return complain(found.error());
  }
  const auto& network = found.value();
  keep(network, recording);
  if (!options.out.empty()) {
    if (const auto written = tutti::write_whole(options.out, tutti::plan::to_json(network)); !written) {
      return complain(written.error());
    }
  }
  if (options.json) {
    fmt::print("{}\n", to_json(recording, network));
    return 0;
  }
  fmt::print("{}", to_text(recording, network));
  if (options.out.empty()) {
    fmt::print("{}", tutti::plan::to_json(network));
  }
  return 0;
}

/// What the first rank does with what was timed.
int use(const Recording& recording, const LinkOptions& options) {
  if (options.record.empty()) {
    return find_and_tell(recording, options);
  }
  if (const auto written = tutti::write_whole(options.record, to_json(recording)); !written) {
    return complain(written.error());
  }
  fmt::print(stderr, "recorded in {}; tutti bench --links --from {} finds the network\n", options.record,
             options.record);
  return 0;
}

/// Whether there is anything to be timed: what the first rank, which writes, finds, and all then exit with.
int begin(const tutti::World& world, const LinkOptions& options) {
  constexpr const char* kBegin = "bench/links/begin";
  constexpr const char* kNo = "no";
  const auto store = world.store();
  if (world.rank() != tutti::Rank{0}) {
    return store->get_to_str({kBegin}) == kNo ? 2 : 0;
  }
  const auto writable = can_write(options);
  store->set(kBegin, std::string(writable ? "yes" : kNo));
  return writable ? 0 : complain(writable.error());
}

}  // namespace

bool wants_links(int count, char** words) {
  return std::any_of(words, words + count, [](std::string_view word) { return word == "--links"; });
}

int links_main(int count, char** words) {
  const auto options = parse(count, words);
  if (!options.from.empty()) {
    const auto recording = read_recording(options.from);
    if (!recording) {
      return complain(recording.error());
    }
    const auto writable = can_write(options);
    return writable ? find_and_tell(recording.value(), options) : complain(writable.error());
  }
  const auto world = tutti::init();
  at::set_num_threads(1);
  int code = begin(world, options);
  const auto recording = code == 0 ? record(world, options) : Recording();
  // Rank 0 may now compute for minutes. Who left a job of MPI's meanwhile would wait for it in MPI_Finalize, in vain;
  // and rank 0 serves the store, so that it leaves last.
  constexpr const char* kOver = "bench/links/over";
  constexpr const char* kHeard = "bench/links/heard";
  const auto store = world.store();
  if (world.rank() != tutti::Rank{0}) {
    store->wait({kOver}, std::chrono::minutes(30));
    store->add(kHeard, 1);
    return code;
  }
  code = code == 0 ? use(recording, options) : code;
  store->set(kOver, std::string("yes"));
  const auto until = tutti::Deadline::after(std::chrono::seconds(10));
  while (store->add(kHeard, 0) < world.size() - 1 && !until.expired()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return code;
}

}  // namespace bench
