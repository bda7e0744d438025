#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tutti::cli {

/// How a fact about the machine bears on a run: fine; good to know; costs speed or safety; makes running impossible.
enum class Grade { ok, note, warning, failure };

/// One fact: a value to read, a sentence on what it means for a run, and the same as numbers for programs.
struct Finding {
  std::string topic;  ///< what it belongs to: "processor", "memory", ...
  std::string name;
  std::string value;
  std::string meaning;
  Grade grade = Grade::ok;
  nlohmann::json data = nullptr;
};

using Findings = std::vector<Finding>;

/// What this machine has. Each examines one part of it; none takes longer than a second.
Findings examine_processor();
Findings examine_memory();
Findings examine_kernel();
Findings examine_limits();
Findings examine_software();

/// What TCP's congestion control of that name means for hosts that are joined by it. Pure.
Finding tcp_finding(const std::string& congestion);

/// "ok", "note", "warning", "failure"
std::string to_string(Grade grade);

/// An aligned table, a topic after another. Pure.
std::string findings_table(const Findings& findings, bool colour);

/// An object: the version, then per topic per name value, status, meaning and data. Pure.
nlohmann::json findings_json(const Findings& findings);

/// "1.5 GiB"
std::string bytes_text(double bytes);

/// Examines and prints everything; 0 unless something makes running impossible.
int doctor_command(bool json);

}  // namespace tutti::cli
