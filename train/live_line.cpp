#include "train/live_line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "train/columns.h"

namespace tutti::train {
namespace {

constexpr std::size_t kShortestBar = 6;
constexpr std::size_t kLongestBar = 30;

struct Figure {
  std::string text;
  int matters = 0;  // the one with the least goes first
};

std::string fixed(double value, int digits) {
  // Large ones by their size: a norm that explodes must not push everything else away.
  return std::abs(value) < 1e5 ? fmt::format("{:.{}f}", value, digits) : fmt::format("{:.2e}", value);
}

std::vector<Figure> figures_of(const Progress& progress) {
  std::vector<Figure> figures{{fmt::format("{}/{}", progress.step, progress.steps), 9},
                              {fmt::format("loss {}", fixed(progress.loss, 4)), 8}};
  const auto add = [&](double value, int matters, const auto& text) {
    if (!std::isnan(value)) {
      figures.push_back({text(value), matters});
    }
  };
  add(progress.evaluation_loss, 5, [](double x) { return fmt::format("eval {}", fixed(x, 4)); });
  add(progress.tokens_per_s, 6, [](double x) { return fmt::format("{} tok/s", count_text(x)); });
  // A norm that is not a number is news, other than a figure that was not measured; the loss is neither, then.
  if (!std::isnan(progress.gradient_norm) || std::isnan(progress.loss)) {
    figures.push_back({fmt::format("norm {}", fixed(progress.gradient_norm, 2)), 3});
  }
  add(progress.exposed, 4, [](double x) { return fmt::format("sync {:.1f}%", 100 * x); });
  add(progress.eta_s, 7, [](double x) { return fmt::format("ETA {}", duration_text(x)); });
  return figures;
}

std::string joined(const std::vector<Figure>& figures) {
  std::string text;
  for (const auto& figure : figures) {
    text += (text.empty() ? "" : "  ") + figure.text;
  }
  return text;
}

double part_of(const Progress& progress) {
  return std::clamp(static_cast<double>(progress.step) / static_cast<double>(std::max<std::int64_t>(1, progress.steps)),
                    0.0, 1.0);
}

/// A bar of so many columns, in eighths of one where there are such letters.
std::string bar(double part, std::size_t columns, bool unicode) {
  constexpr std::size_t kEighths = 8;
  static constexpr std::array<const char*, kEighths> kParts{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto inner = columns - 2;
  const auto eighths = static_cast<std::size_t>(part * static_cast<double>(inner * kEighths));
  std::string text;
  for (std::size_t i = 0; i < eighths / kEighths; ++i) {
    text += unicode ? "█" : "#";
  }
  auto filled = eighths / kEighths;
  if (unicode && eighths % kEighths != 0) {
    text += kParts[eighths % kEighths];
    ++filled;
  }
  return (unicode ? "▕" : "[") + text + std::string(inner - filled, ' ') + (unicode ? "▏" : "]");
}

}  // namespace

std::string live_line(const Progress& progress, std::size_t columns, bool unicode) {
  auto figures = figures_of(progress);
  while (figures.size() > 1 && columns_of(joined(figures)) > columns) {
    figures.erase(std::min_element(figures.begin(), figures.end(),
                                   [](const Figure& a, const Figure& b) { return a.matters < b.matters; }));
  }
  const auto text = joined(figures);
  const auto used = columns_of(text);
  if (used > columns) {
    return unicode ? cut(text, columns) : text.substr(0, columns);
  }
  const auto left = columns - used;
  return left > kShortestBar ? bar(part_of(progress), std::min(left - 1, kLongestBar), unicode) + " " + text : text;
}

std::string plain_line(const Progress& progress) { return "step " + joined(figures_of(progress)); }

std::string json_line(const Progress& progress) {
  // The library writes what is not finite as null.
  const nlohmann::ordered_json json{{"step", progress.step},
                                    {"steps", progress.steps},
                                    {"loss", progress.loss},
                                    {"evaluation_loss", progress.evaluation_loss},
                                    {"tokens_per_s", progress.tokens_per_s},
                                    {"gradient_norm", progress.gradient_norm},
                                    {"learning_rate", progress.learning_rate},
                                    {"exposed", progress.exposed},
                                    {"eta_s", progress.eta_s}};
  return json.dump();
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e12) {
    return "?";
  }
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 60) {
    return fmt::format("{}s", whole);
  }
  if (whole < 3600) {
    return fmt::format("{}m{:02}s", whole / 60, whole % 60);
  }
  if (whole < 86400) {
    return fmt::format("{}h{:02}m", whole / 3600, whole / 60 % 60);
  }
  return fmt::format("{}d{:02}h", whole / 86400, whole / 3600 % 24);
}

std::string count_text(double count) {
  if (!std::isfinite(count)) {
    return "?";
  }
  for (const auto& [unit, letter] :
       {std::pair(1e12, 'T'), std::pair(1e9, 'G'), std::pair(1e6, 'M'), std::pair(1e3, 'k')}) {
    if (count >= 0.9995 * unit) {
      const auto scaled = count / unit;
      return fmt::format("{:.{}f}{}", scaled, scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0, letter);
    }
  }
  return fmt::format("{:.0f}", count);
}

}  // namespace tutti::train
