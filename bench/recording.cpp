#include "bench/recording.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/link_json.h"

namespace bench {
namespace {

using nlohmann::ordered_json;
using tutti::Code;
using tutti::Error;
using tutti::Result;

constexpr int kMostRanks = 4096;
constexpr unsigned kMostChunks = 4096;
constexpr std::size_t kMostBytes = std::size_t{1} << 40;

Error wrong(const std::string& sentence) { return {Code::invalid_argument, sentence}; }

int count_in(const ordered_json& json, const char* key, int most) {
  const auto value = json.at(key).get<std::int64_t>();
  if (value < 1 || value > most) {
    throw std::out_of_range(fmt::format("{}: {} is not from 1 to {}", key, value, most));
  }
  return static_cast<int>(value);
}

std::vector<double> times_in(const ordered_json& json) {
  auto times = json.at("round_seconds").get<std::vector<double>>();
  const bool good =
      std::all_of(times.begin(), times.end(), [](double time) { return time > 0 && std::isfinite(time); });
  if (times.empty() || !good) {
    throw std::out_of_range("round_seconds: times above 0 are wanted");
  }
  return times;
}

Result<LinkCase> case_in(const ordered_json& json) {
  const auto op = tutti::plan::parse_op(json.at("op").get<std::string>());
  const auto algorithm = tutti::plan::parse_algorithm(json.at("algorithm").get<std::string>());
  if (!op || !algorithm) {
    return op ? algorithm.error() : op.error();
  }
  const LinkKind kind{.op = op.value(),
                      .algorithm = algorithm.value(),
                      .chunks = static_cast<unsigned>(count_in(json, "chunks", kMostChunks)),
                      .leaders = static_cast<unsigned>(count_in(json, "leaders", kMostRanks))};
  const Ranks taking_part{count_in(json, "hosts", kMostRanks), count_in(json, "ranks_of_host", kMostRanks)};
  if (taking_part.hosts * taking_part.of_host > kMostRanks) {
    return wrong(fmt::format("{} hosts of {} ranks are too many", taking_part.hosts, taking_part.of_host));
  }
  auto one = link_case(kind, taking_part, json.at("bytes").get<std::size_t>());
  if (one.plan.bytes > kMostBytes) {
    return wrong(fmt::format("bytes: {} are too many", one.plan.bytes));
  }
  if (auto good = check(one.plan.request); !good) {
    return good.error();
  }
  one.rounds = times_in(json);
  one.settle();
  return one;
}

Result<std::vector<LinkCase>> cases_in(const ordered_json& json) {
  std::vector<LinkCase> cases;
  for (const auto& plan : json.at("plans")) {
    auto one = case_in(plan);
    if (!one) {
      return one.error();
    }
    cases.push_back(std::move(one).value());
  }
  return cases;
}

Result<Recording> recording_in(const ordered_json& json) {
  Recording recording{.machine = json.at("machine").get<std::string>(),
                      .ranks = {count_in(json, "hosts", kMostRanks), count_in(json, "ranks_of_host", kMostRanks)},
                      .cores_of_host = count_in(json, "cores_of_host", 1 << 20)};
  auto calibration = cases_in(json.at("calibration"));
  if (!calibration) {
    return calibration.error();
  }
  recording.calibration = std::move(calibration).value();
  if (recording.calibration.empty()) {
    return wrong("nothing was timed to calibrate by");
  }
  if (json.contains("comparison")) {
    auto comparison = cases_in(json["comparison"]);
    if (!comparison) {
      return comparison.error();
    }
    recording.comparison = std::move(comparison).value();
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
  try {
    return recording_in(ordered_json::parse(text));
  } catch (const std::exception& error) {  // the JSON library's, and ours about numbers
    return wrong(error.what());
  }
}

Result<Recording> read_recording(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    return Error{Code::not_found, fmt::format("cannot read {}", path)};
  }
  auto recording = parse_recording(text.str());
  if (!recording) {
    return wrong(fmt::format("{} is no recording of tutti bench --links: {}", path, recording.error().message));
  }
  return recording;
}

}  // namespace bench
