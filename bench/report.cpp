#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bench {
namespace {

std::string size_text(std::size_t bytes) {
  for (const auto& [unit, name] :
       {std::pair<std::size_t, const char*>{1UL << 30, "GiB"}, {1UL << 20, "MiB"}, {1UL << 10, "KiB"}}) {
    if (bytes >= unit) {
      return fmt::format("{:.4g} {}", static_cast<double>(bytes) / static_cast<double>(unit), name);
    }
  }
  return fmt::format("{} B", bytes);
}

/// From a value to a position on an axis of powers of ten.
struct Axis {
  double low;
  double high;
  double from;
  double to;

  double at(double value) const {
    const double span = std::max(std::log10(high) - std::log10(low), 1e-9);
    return from + (std::log10(value) - std::log10(low)) / span * (to - from);
  }
};

Axis axis_of(const std::vector<double>& values, double from, double to) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {std::pow(10, std::floor(std::log10(*low))), std::pow(10, std::ceil(std::log10(*high) + 1e-9)), from, to};
}

}  // namespace

double bus_gigabytes_per_second(const Line& line) {
  const auto ranks = static_cast<double>(line.ranks);
  const double share = line.op == "all_reduce"                         ? 2 * (ranks - 1) / ranks
                       : line.op == "broadcast" || line.op == "reduce" ? 1
                                                                       : (ranks - 1) / ranks;
  return line.summary.median_us > 0 ? share * static_cast<double>(line.bytes) / line.summary.median_us / 1e3 : 0;
}

std::pair<ReportOptions, std::vector<char*>> split_report_options(int count, char** words) {
  ReportOptions options;
  std::vector<char*> rest;
  for (int i = 0; i < count; ++i) {
    const std::string_view word = words[i];
    const bool has_value = i + 1 < count;
    if (word == "--json") {
      options.json = true;
    } else if (word == "--tune") {
      options.tune = true;
    } else if (word == "--reproducible") {
      options.reproducible = true;
    } else if (word == "--plot" && has_value) {
      options.plot = words[++i];
    } else if (word == "--memory" && has_value) {
      const std::string value = words[++i];
      if (value == "symmetric" || value == "private") {
        options.memories = {value};
      } else if (value != "both") {
        fail("--memory is symmetric, private or both, not '" + value + "'");
      }
    } else {
      rest.push_back(words[i]);
    }
  }
  return {std::move(options), std::move(rest)};
}

void show_progress(const ReportOptions& options, const std::vector<Line>& lines) {
  if (options.json) {
    return;
  }
  const auto& line = lines.back();
  if (lines.size() == 1) {
    fmt::print("{} of {}, {} ranks\n{:>10}  {:<9}  {:>11}  {:>23}  {:>9}\n", line.op, line.dtype, line.ranks, "size",
               "memory", "median us", "10 % to 90 %", "bus GB/s");
  }
  fmt::print("{:>10}  {:<9}  {:>11.2f}  {:>10.2f} to {:>9.2f}  {:>9.2f}\n", size_text(line.bytes), line.memory,
             line.summary.median_us, line.summary.p10_us, line.summary.p90_us, bus_gigabytes_per_second(line));
  std::fflush(stdout);
}

std::string to_json(const std::vector<Line>& lines) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& line : lines) {
    all.push_back({{"op", line.op},
                   {"ranks", line.ranks},
                   {"bytes", line.bytes},
                   {"dtype", line.dtype},
                   {"memory", line.memory},
                   {"median_us", line.summary.median_us},
                   {"busbw_gbps", bus_gigabytes_per_second(line)},
                   {"p10_us", line.summary.p10_us},
                   {"p90_us", line.summary.p90_us},
                   {"samples", line.summary.samples}});
  }
  return all.dump(1);
}

std::string to_svg(const std::vector<Line>& lines) {
  std::map<std::string, std::vector<std::pair<double, double>>> curves;
  std::vector<double> sizes;
  std::vector<double> rates;
  for (const auto& line : lines) {
    const double rate = bus_gigabytes_per_second(line);
    if (line.bytes > 0 && rate > 0) {
      curves[line.memory].emplace_back(static_cast<double>(line.bytes), rate);
      sizes.push_back(static_cast<double>(line.bytes));
      rates.push_back(rate);
    }
  }
  std::string svg =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 400\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<style>text{fill:#222}line{stroke:#ccc}svg{background:#fff}@media(prefers-color-scheme:dark){text{fill:#ddd}"
      "line{stroke:#444}svg{background:#111}}</style>\n";
  if (sizes.empty()) {
    return svg + "</svg>\n";
  }
  const auto x = axis_of(sizes, 60, 620);
  const auto y = axis_of(rates, 360, 30);
  svg += fmt::format("<text x=\"60\" y=\"18\">{} of {}, {} ranks: bus bandwidth in GB/s over size</text>\n",
                     lines[0].op, lines[0].dtype, lines[0].ranks);
  for (long decade = std::lround(std::log10(y.low)); decade <= std::lround(std::log10(y.high)); ++decade) {
    const double rate = std::pow(10, decade);
    svg += fmt::format(
        "<line x1=\"60\" x2=\"620\" y1=\"{0:.1f}\" y2=\"{0:.1f}\"/><text x=\"52\" y=\"{1:.1f}\" "
        "text-anchor=\"end\">{2:g}</text>\n",
        y.at(rate), y.at(rate) + 4, rate);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  for (const double size : sizes) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"378\" text-anchor=\"middle\">{}</text>\n", x.at(size),
                       size_text(static_cast<std::size_t>(size)));
  }
  constexpr std::string_view kColours[] = {"#0b7", "#c50"};
  std::size_t number = 0;
  for (auto& [memory, points] : curves) {
    std::sort(points.begin(), points.end());
    const auto colour = kColours[number % 2];
    svg += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"", colour);
    for (const auto& [size, rate] : points) {
      svg += fmt::format("{:.1f},{:.1f} ", x.at(size), y.at(rate));
    }
    svg += fmt::format("\"/><text x=\"{}\" y=\"396\" style=\"fill:{}\">{}</text>\n", 80 + 120 * number, colour, memory);
    ++number;
  }
  return svg + "</svg>\n";
}

int finish_report(const ReportOptions& options, const std::vector<Line>& lines) {
  if (options.json) {
    fmt::print("{}\n", to_json(lines));
  }
  if (!options.plot.empty()) {
    std::ofstream file(options.plot);
    file << to_svg(lines);
    if (!file.flush()) {
      std::fputs(fmt::format("bench: cannot write the plot to {}\n", options.plot).c_str(), stderr);
      return 1;
    }
  }
  return 0;
}

}  // namespace bench
