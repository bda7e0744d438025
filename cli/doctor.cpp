#include "cli/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "tutti/version.h"

namespace tutti::cli {
namespace {

int colour_of(Grade grade) {
  switch (grade) {
    case Grade::ok: return 32;
    case Grade::note: return 36;
    case Grade::warning: return 33;
    case Grade::failure: return 31;
  }
  return 0;
}

}  // namespace

std::string to_string(Grade grade) {
  switch (grade) {
    case Grade::ok: return "ok";
    case Grade::note: return "note";
    case Grade::warning: return "warning";
    case Grade::failure: return "failure";
  }
  return "unknown";
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  const bool whole = bytes == static_cast<double>(static_cast<long>(bytes));
  return fmt::format("{:.{}f} {}", bytes, whole ? 0 : 1, kUnits[unit]);
}

std::string findings_table(const Findings& findings, bool colour) {
  std::size_t name_width = 0;
  std::size_t value_width = 0;
  for (const Finding& finding : findings) {
    name_width = std::max(name_width, finding.name.size());
    value_width = std::max(value_width, std::min<std::size_t>(finding.value.size(), 40));
  }
  std::string table;
  std::string topic;
  for (const Finding& finding : findings) {
    if (finding.topic != topic) {
      table += fmt::format("{}{}\n", topic.empty() ? "" : "\n", finding.topic);
      topic = finding.topic;
    }
    const std::string grade = fmt::format("{:<8}", to_string(finding.grade));
    table += fmt::format("  {} {:<{}}  {:<{}}  {}\n",
                         colour ? fmt::format("\x1b[{}m{}\x1b[0m", colour_of(finding.grade), grade) : grade,
                         finding.name, name_width, finding.value, value_width, finding.meaning);
  }
  return table;
}

nlohmann::json findings_json(const Findings& findings) {
  nlohmann::json result{{"tutti", kVersion}};
  for (const Finding& finding : findings) {
    result[finding.topic][finding.name] = {{"value", finding.value},
                                           {"status", to_string(finding.grade)},
                                           {"meaning", finding.meaning},
                                           {"data", finding.data}};
  }
  return result;
}

int doctor_command(bool json) {
  Findings findings;
  for (const auto examine : {examine_processor, examine_memory, examine_kernel, examine_limits, examine_software}) {
    Findings part = examine();
    findings.insert(findings.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  }
  if (json) {
    fmt::print("{}\n", findings_json(findings).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    const char* refused = std::getenv("NO_COLOR");
    const bool colour = ::isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == '\0');
    fmt::print("{}", findings_table(findings, colour));
  }
  const bool impossible = std::any_of(findings.begin(), findings.end(),
                                      [](const Finding& finding) { return finding.grade == Grade::failure; });
  return impossible ? 1 : 0;
}

}  // namespace tutti::cli
