#include "bench/link_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/link_json.h"
#include "tutti/plan/network_json.h"
#include "tutti/plan/price_map.h"

namespace bench {
namespace {

using nlohmann::ordered_json;

std::string title_of(const tutti::plan::Request& request) {
  const bool hybrid = request.algorithm == tutti::plan::Algorithm::hybrid;
  return fmt::format("{} {}{}/{}", to_string(request.op), to_string(request.algorithm),
                     hybrid ? fmt::format("@{}", request.leaders) : "", request.chunks);
}

ordered_json to_json(const std::vector<LinkLine>& lines) {
  auto plans = ordered_json::array();
  for (const auto& line : lines) {
    plans.push_back(case_json(line.timed));
    plans.back()["simulated_seconds"] = line.simulated;
  }
  const auto errors = errors_of(lines);
  return {{"median_error", errors.median},
          {"worst_error", errors.worst},
          {"median_scatter", errors.scatter},
          {"plans", std::move(plans)}};
}

}  // namespace

std::vector<LinkLine> compare(const std::vector<LinkCase>& cases, const tutti::plan::Network& network) {
  std::vector<LinkLine> lines;
  for (const auto& one : cases) {
    lines.push_back({one, tutti::plan::simulated_seconds(one.plan, network).value()});
  }
  return lines;
}

LinkErrors errors_of(const std::vector<LinkLine>& lines) {
  std::vector<double> errors;
  std::vector<double> scatters;
  for (const auto& line : lines) {
    errors.push_back(std::abs(line.error()));
    scatters.push_back(line.timed.scatter());
  }
  std::sort(errors.begin(), errors.end());
  std::sort(scatters.begin(), scatters.end());
  const auto middle = errors.size() / 2;
  return errors.empty() ? LinkErrors{} : LinkErrors{errors[middle], errors.back(), scatters[middle]};
}

std::string table(const std::string& title, const std::vector<LinkLine>& lines) {
  auto text = fmt::format("{}\n{:<34} {:>5} {:>10} {:>10} {:>10} {:>7}\n", title, "plan", "ranks", "bytes", "measured",
                          "simulated", "error");
  for (const auto& line : lines) {
    const auto& plan = line.timed.plan;
    text += fmt::format(
        "{:<34} {:>5} {:>10} {:>10} {:>10} {:>+6.0f}%\n", plan.bytes == 0 ? "ranks meet" : title_of(plan.request),
        plan.request.ranks, tutti::plan::bytes_text(static_cast<double>(plan.bytes)),
        tutti::plan::seconds_text(plan.seconds), tutti::plan::seconds_text(line.simulated), 100 * line.error());
  }
  const auto errors = errors_of(lines);
  return text +
         fmt::format("{} plans: median error {:.1f} %, worst {:.1f} %; halves of the rounds differ by {:.1f} %\n",
                     lines.size(), 100 * errors.median, 100 * errors.worst, 100 * errors.scatter);
}

std::string to_json(const Recording& recording, const tutti::plan::Network& network) {
  auto json = heading_json(recording);
  json["network"] = ordered_json::parse(tutti::plan::to_json(network));
  json["calibration"] = to_json(compare(recording.calibration, network));
  if (!recording.comparison.empty()) {
    json["comparison"] = to_json(compare(recording.comparison, network));
  }
  return json.dump(1);
}

std::string to_text(const Recording& recording, const tutti::plan::Network& network) {
  auto text = table("Calibrated by", compare(recording.calibration, network)) + "\n";
  if (!recording.comparison.empty()) {
    text += table("Compared with others", compare(recording.comparison, network)) + "\n";
  }
  return text;
}

}  // namespace bench
