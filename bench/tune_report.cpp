#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/tune.h"
#include "tutti/base/bytes.h"

namespace bench {
namespace {

using tutti::plan::Tried;

std::string microseconds_text(double seconds) {
  const auto us = seconds * 1e6;
  return us < 10 ? fmt::format("{:.2f}", us) : us < 100 ? fmt::format("{:.1f}", us) : fmt::format("{:.0f}", us);
}

/// In the order in which they first come.
std::vector<std::string> all_names(const Grid& grid) {
  std::vector<std::string> names;
  for (const auto& size : grid.sizes) {
    for (const auto& tried : size.tried) {
      if (auto name = tutti::plan::text_of(tried.choice); std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(std::move(name));
      }
    }
  }
  return names;
}

}  // namespace

std::string to_text(const Grid& grid) {
  constexpr int kName = 34;
  auto text = fmt::format("{} in {} memory, {}: microseconds by bytes of a block; * is chosen\n{:<{}}", grid.op,
                          grid.memory, grid.shape, "", kName);
  for (const auto& size : grid.sizes) {
    text += fmt::format(" {:>9}", tutti::spell_bytes(size.bytes));
  }
  text += "\n";
  for (const auto& name : all_names(grid)) {
    text += fmt::format("{:<{}}", name, kName);
    for (std::size_t i = 0; i < grid.sizes.size(); ++i) {
      const auto& size = grid.sizes[i];
      const auto found = std::find_if(size.tried.begin(), size.tried.end(),
                                      [&](const Tried& tried) { return tutti::plan::text_of(tried.choice) == name; });
      const bool chosen = name == grid.checks[i].chosen;
      text += found == size.tried.end()
                  ? fmt::format(" {:>9}", "")
                  : fmt::format(" {:>9}", microseconds_text(found->seconds) + (chosen ? "*" : ""));
    }
    text += "\n";
  }
  text += fmt::format("{:<{}}", "chosen to quickest, in turns", kName);
  for (const auto& check : grid.checks) {
    text += fmt::format(" {:>9.3f}", check.behind);
  }
  return text + fmt::format("\nchosen: {}\nat most {:.1f} % behind the quickest\n", grid.choices.text(),
                            (grid.worst() - 1) * 100);
}

std::string to_json(const std::vector<Grid>& grids) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& grid : grids) {
    auto sizes = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < grid.sizes.size(); ++i) {
      auto tried = nlohmann::ordered_json::object();
      for (const auto& each : grid.sizes[i].tried) {
        tried[tutti::plan::text_of(each.choice)] = each.seconds * 1e6;
      }
      const auto& check = grid.checks[i];
      sizes.push_back({{"bytes", grid.sizes[i].bytes},
                       {"tried_us", std::move(tried)},
                       {"chosen", check.chosen},
                       {"chosen_us", check.seconds * 1e6},
                       {"best", check.best},
                       {"best_us", check.best_seconds * 1e6},
                       {"behind", check.behind}});
    }
    all.push_back({{"op", grid.op},
                   {"memory", grid.memory},
                   {"group", grid.shape},
                   {"choices", grid.choices.text()},
                   {"worst", grid.worst()},
                   {"sizes", std::move(sizes)}});
  }
  return all.dump(1);
}

}  // namespace bench
