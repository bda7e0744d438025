#include "bench/recording.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/link_json.h"
#include "tutti/base/whole_file.h"

namespace bench {
namespace {

using nlohmann::ordered_json;
using Json = nlohmann::json;  // the ordered one looks for each key among all before it
using tutti::Code;
using tutti::Error;
using tutti::Result;

constexpr int kMostRanks = 4096;
constexpr unsigned kMostChunks = 4096;
constexpr std::size_t kMostBytes = std::size_t{1} << 40;
constexpr std::size_t kMostPlans = 20000;  // of each part
constexpr std::size_t kLongestName = 200;
constexpr double kShortestTime = 1e-9;
constexpr double kLongestTime = 1e5;

Error wrong(const std::string& sentence) { return {Code::invalid_argument, sentence}; }

/// Of one object in the recording, by key; what is not there or not right is thrown, with the key.
const Json& part_of(const Json& json, const char* key) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end()) {
    throw std::out_of_range(json.is_object() ? fmt::format("no '{}'", key) : "an object is wanted");
  }
  return *found;
}

std::uint64_t count_in(const Json& json, const char* key, std::uint64_t most, std::uint64_t least = 1) {
  const auto& value = part_of(json, key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least || value.get<std::uint64_t>() > most) {
    throw std::out_of_range(fmt::format("{}: {} is not a whole number from {} to {}", key,
                                        value.is_number() ? value.dump() : value.type_name(), least, most));
  }
  return value.get<std::uint64_t>();
}

int small_count_in(const Json& json, const char* key, int most) {
  return static_cast<int>(count_in(json, key, static_cast<std::uint64_t>(most)));
}

std::string text_in(const Json& json, const char* key) {
  const auto& value = part_of(json, key);
  if (!value.is_string()) {
    throw std::out_of_range(fmt::format("{}: a text is wanted", key));
  }
  return value.get<std::string>();
}

/// A file is named by it.
std::string machine_in(const Json& json) {
  auto name = text_in(json, "machine");
  const auto says_something = [](unsigned char letter) { return std::isalnum(letter) != 0; };
  if (name.size() > kLongestName || std::none_of(name.begin(), name.end(), says_something)) {
    throw std::out_of_range(fmt::format("machine: a name of 1 to {} characters is wanted", kLongestName));
  }
  return name;
}

std::vector<double> times_in(const Json& json) {
  const auto& list = part_of(json, "round_seconds");
  std::vector<double> times;
  for (const auto& time : list.is_array() ? list : Json::array()) {
    times.push_back(time.is_number() ? time.get<double>() : 0);
  }
  const bool good = std::all_of(times.begin(), times.end(),
                                [](double time) { return time >= kShortestTime && time <= kLongestTime; });
  if (times.empty() || !good) {
    throw std::out_of_range(
        fmt::format("round_seconds: a list of times from {} to {} is wanted", kShortestTime, kLongestTime));
  }
  return times;
}

template <class T>
T or_throw(Result<T> result, const char* key) {
  if (!result) {
    throw std::out_of_range(fmt::format("{}: {}", key, result.error().message));
  }
  return std::move(result).value();
}

/// Of some of the recording's ranks.
LinkCase case_in(const Json& json, const Ranks& all) {
  const LinkKind kind{.op = or_throw(tutti::plan::parse_op(text_in(json, "op")), "op"),
                      .algorithm = or_throw(tutti::plan::parse_algorithm(text_in(json, "algorithm")), "algorithm"),
                      .chunks = static_cast<unsigned>(count_in(json, "chunks", kMostChunks)),
                      .leaders = static_cast<unsigned>(count_in(json, "leaders", kMostRanks))};
  const Ranks taking_part{small_count_in(json, "hosts", all.hosts), small_count_in(json, "ranks_of_host", all.of_host)};
  auto one = link_case(kind, taking_part, count_in(json, "bytes", kMostBytes, 0));
  const auto& request = one.plan.request;
  if (auto good = check(request); !good) {
    throw std::out_of_range(good.error().message);
  }
  if (!is_short(one)) {
    throw std::out_of_range(fmt::format("{} ranks, {} bytes and {} chunks: too much to be simulated again and again",
                                        request.ranks, one.plan.bytes, request.chunks));
  }
  one.rounds = times_in(json);
  one.settle();
  return one;
}

std::vector<LinkCase> cases_in(const Json& json, const char* part, const Ranks& all) {
  const auto& plans = part_of(part_of(json, part), "plans");
  if (!plans.is_array() || plans.size() > kMostPlans) {
    throw std::out_of_range(fmt::format("{}: plans: a list of up to {} is wanted", part, kMostPlans));
  }
  std::vector<LinkCase> cases;
  for (const auto& plan : plans) {
    try {
      cases.push_back(case_in(plan, all));
    } catch (const std::exception& error) {
      throw std::out_of_range(fmt::format("{}: plan {}: {}", part, cases.size() + 1, error.what()));
    }
  }
  return cases;
}

Recording recording_in(const Json& json) {
  Recording recording{
      .machine = machine_in(json),
      .ranks = {small_count_in(json, "hosts", kMostRanks), small_count_in(json, "ranks_of_host", kMostRanks)},
      .cores_of_host = small_count_in(json, "cores_of_host", 1 << 20)};
  if (recording.ranks.hosts * recording.ranks.of_host > kMostRanks) {
    throw std::out_of_range(
        fmt::format("{} hosts of {} ranks are too many", recording.ranks.hosts, recording.ranks.of_host));
  }
  recording.calibration = cases_in(json, "calibration", recording.ranks);
  if (recording.calibration.empty()) {
    throw std::out_of_range("nothing was timed to calibrate by");
  }
  if (json.contains("comparison")) {
    recording.comparison = cases_in(json, "comparison", recording.ranks);
  }
  return recording;
}

ordered_json plans_json(const std::vector<LinkCase>& cases) {
  auto plans = ordered_json::array();
  for (const auto& one : cases) {
    plans.push_back(case_json(one));
  }
  return {{"plans", std::move(plans)}};
}

}  // namespace

ordered_json case_json(const LinkCase& one) {
  const auto& request = one.plan.request;
  return {{"op", to_string(request.op)}, {"algorithm", to_string(request.algorithm)},
          {"chunks", request.chunks},    {"leaders", request.leaders},
          {"hosts", one.hosts},          {"ranks_of_host", one.plan.ranks_of_host},
          {"bytes", one.plan.bytes},     {"seconds", one.plan.seconds},
          {"round_seconds", one.rounds}};
}

ordered_json heading_json(const Recording& recording) {
  return {{"machine", recording.machine},
          {"hosts", recording.ranks.hosts},
          {"ranks_of_host", recording.ranks.of_host},
          {"cores_of_host", recording.cores_of_host}};
}

std::string to_json(const Recording& recording) {
  auto json = heading_json(recording);
  json["calibration"] = plans_json(recording.calibration);
  if (!recording.comparison.empty()) {
    json["comparison"] = plans_json(recording.comparison);
  }
  return json.dump(1) + "\n";
}

Result<Recording> parse_recording(const std::string& text) {
  const auto json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return wrong("not JSON");
  }
  try {
    return recording_in(json);
  } catch (const std::exception& error) {
    return wrong(error.what());
  }
}

Result<Recording> read_recording(const std::string& path) {
  const auto text = tutti::read_whole(path);
  if (!text) {
    return text.error();
  }
  auto recording = parse_recording(text.value());
  if (!recording) {
    return wrong(fmt::format("{} is no recording of tutti bench --links: {}", path, recording.error().message));
  }
  return recording;
}

}  // namespace bench
