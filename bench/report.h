#pragma once
// What `tutti bench` tells: a table, JSON, a plot.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "bench/measure.h"

namespace bench {

/// One measured size.
struct Line {
  std::string op;
  std::size_t ranks = 0;
  std::size_t bytes = 0;
  std::string dtype;
  std::string memory;  ///< symmetric or private
  Summary summary;
};

struct ReportOptions {
  std::vector<std::string> memories = {"symmetric", "private"};
  bool json = false;
  bool tune = false;          ///< find out what is quickest instead
  bool reproducible = false;  ///< sums whose bits depend on the addends alone
  std::string plot;           ///< a file for an SVG; empty: none
};

/// What the bytes on the busiest link would be, as NCCL's tests count them: comparable between numbers of ranks.
double bus_gigabytes_per_second(const Line& line);

/// Takes --memory, --tune, --reproducible, --json and --plot out of the arguments; the rest is for parse_options.
std::pair<ReportOptions, std::vector<char*>> split_report_options(int count, char** words);

/// A line of the table as soon as it is measured, unless the report is JSON.
void show_progress(const ReportOptions& options, const std::vector<Line>& lines);

/// JSON and plot. Returns what the program exits with.
int finish_report(const ReportOptions& options, const std::vector<Line>& lines);

std::string to_json(const std::vector<Line>& lines);
/// Bus bandwidth over size, both logarithmic, one curve for each kind of memory.
std::string to_svg(const std::vector<Line>& lines);

}  // namespace bench
