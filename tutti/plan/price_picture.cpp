#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "tutti/plan/price_map.h"
#include "tutti/plan/svg.h"

namespace tutti::plan {
namespace {

constexpr int kTop = 56;
constexpr int kLeft = 76;
constexpr int kCell = 40;
constexpr int kBetween = 120;
constexpr int kCurves = 460;

/// Colours that can be told apart also by those who see few.
const char* color_of(Algorithm algorithm) {
  static constexpr const char* kColors[] = {"#0072b2", "#e69f00", "#d55e00", "#009e73", "#56b4e9", "#c9b800",
                                            "#cc79a7", "#8b5a2b", "#7a5cc7", "#44aa99", "#777777"};
  return kColors[static_cast<std::size_t>(algorithm)];
}

const char* dash_of(Algorithm algorithm) { return static_cast<std::size_t>(algorithm) % 2 == 0 ? "none" : "6 3"; }

class MapDrawing {
 public:
  explicit MapDrawing(const PriceMap& map)
      : map_(map),
        columns_(static_cast<int>(map.bytes.size())),
        rows_(static_cast<int>(map.ranks.size())),
        height_(std::max(rows_ * kCell, 8 * kCell)) {}

  std::string text() {
    svg_.add(
        "<style>svg{{background:#fff}}text{{fill:#222}}.grid{{stroke:#ddd}}.frame{{stroke:#888;fill:none}}"
        "@media(prefers-color-scheme:dark){{svg{{background:#151515}}text{{fill:#ddd}}.grid{{stroke:#333}}}}</style>");
    svg_.add("<text x='{}' y='20' font-size='15'>{} on {}</text>", kLeft, to_string(map_.op), Svg::escaped(map_.title));
    draw_cells();
    draw_curves();
    draw_legend();
    return std::move(svg_).finish();
  }

 private:
  int legend_lines() const { return (static_cast<int>(map_.algorithms.size()) + 3) / 4; }
  int curves_left() const { return kLeft + columns_ * kCell + kBetween; }
  int bottom() const { return kTop + height_; }

  void draw_cells() {
    svg_.add("<text x='{}' y='{}'>the quickest, by size and number of ranks</text>", kLeft, kTop - 12);
    const double cell_height = static_cast<double>(height_) / rows_;
    for (int row = 0; row < rows_; ++row) {
      const auto y = bottom() - (row + 1) * cell_height;
      svg_.add("<text x='{}' y='{:.1f}' text-anchor='end'>{}</text>", kLeft - 8, y + cell_height / 2 + 4,
               map_.ranks[static_cast<std::size_t>(row)]);
      for (int column = 0; column < columns_; ++column) {
        const auto& cell = map_.cells[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
        if (cell.seconds == 0) {
          continue;
        }
        svg_.add(
            "<rect x='{}' y='{:.1f}' width='{}' height='{:.1f}' fill='{}'><title>{} ranks, {}: {}, {}</title></rect>",
            kLeft + column * kCell, y, kCell - 1, cell_height - 1, color_of(cell.winner),
            map_.ranks[static_cast<std::size_t>(row)],
            bytes_text(static_cast<double>(map_.bytes[static_cast<std::size_t>(column)])), to_string(cell.winner),
            seconds_text(cell.seconds));
      }
    }
    draw_sizes(kLeft, kCell);
    svg_.add("<text x='14' y='{}' transform='rotate(-90 14 {})' text-anchor='middle'>ranks</text>", kTop + height_ / 2,
             kTop + height_ / 2);
  }

  void draw_sizes(int left, double step) {
    for (int column = 0; column < columns_; column += 2) {
      svg_.add("<text x='{:.1f}' y='{}' text-anchor='middle'>{}</text>", left + (column + 0.5) * step, bottom() + 18,
               bytes_text(static_cast<double>(map_.bytes[static_cast<std::size_t>(column)])));
    }
    svg_.add("<text x='{:.1f}' y='{}' text-anchor='middle'>bytes of a block</text>", left + columns_ * step / 2,
             bottom() + 38);
  }

  void draw_curves() {
    double least = 1e300;
    double most = 0;
    for (const auto& curve : map_.seconds) {
      for (const auto seconds : curve) {
        least = seconds > 0 ? std::min(least, seconds) : least;
        most = std::max(most, seconds);
      }
    }
    if (!(most > 0) || !(least > 0)) {
      return;
    }
    const auto low = static_cast<int>(std::floor(std::log10(least)));
    const auto high = std::max(static_cast<int>(std::ceil(std::log10(most))), low + 1);
    const auto y_of = [&](double seconds) { return bottom() - (std::log10(seconds) - low) / (high - low) * height_; };
    const auto step = static_cast<double>(kCurves) / columns_;
    svg_.add("<text x='{}' y='{}'>time by size, {} ranks</text>", curves_left(), kTop - 12, map_.asked_ranks);
    for (auto power = low; power <= high; ++power) {
      const auto y = y_of(std::pow(10, power));
      svg_.add("<line class='grid' x1='{}' x2='{}' y1='{:.1f}' y2='{:.1f}'/>", curves_left(), curves_left() + kCurves,
               y, y);
      svg_.add("<text x='{}' y='{:.1f}' text-anchor='end'>{}</text>", curves_left() - 8, y + 4, decade_text(power));
    }
    for (std::size_t i = 0; i < map_.algorithms.size(); ++i) {
      std::string points;
      for (std::size_t column = 0; column < map_.seconds[i].size(); ++column) {
        if (map_.seconds[i][column] == 0) {
          continue;
        }
        points += fmt::format("{:.1f},{:.1f} ", curves_left() + (static_cast<double>(column) + 0.5) * step,
                              y_of(map_.seconds[i][column]));
      }
      svg_.add(
          "<polyline points='{}' fill='none' stroke='{}' stroke-width='2' "
          "stroke-dasharray='{}'><title>{}</title></polyline>",
          points, color_of(map_.algorithms[i]), dash_of(map_.algorithms[i]), to_string(map_.algorithms[i]));
    }
    svg_.add("<rect class='frame' x='{}' y='{}' width='{}' height='{}'/>", curves_left(), kTop, kCurves, height_);
    draw_sizes(curves_left(), step);
  }

  static std::string decade_text(int power) {
    static constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
    const auto exponent = power + 9;
    const auto unit = std::clamp(exponent / 3, 0, 3);
    return fmt::format("{:g} {}", std::pow(10, exponent - 3 * unit), kUnits[unit]);
  }

  void draw_legend() {
    for (std::size_t i = 0; i < map_.algorithms.size(); ++i) {
      const auto x = kLeft + static_cast<int>(i % 4) * 190;
      const auto y = bottom() + 66 + static_cast<int>(i / 4) * 20;
      const auto algorithm = map_.algorithms[i];
      svg_.add("<rect x='{}' y='{}' width='14' height='12' fill='{}'/>", x, y - 10, color_of(algorithm));
      svg_.add("<line x1='{}' x2='{}' y1='{}' y2='{}' stroke='{}' stroke-width='2' stroke-dasharray='{}'/>", x + 18,
               x + 42, y - 4, y - 4, color_of(algorithm), dash_of(algorithm));
      svg_.add("<text x='{}' y='{}'>{}</text>", x + 48, y, to_string(algorithm));
    }
  }

  const PriceMap& map_;
  int columns_;
  int rows_;
  int height_;
  Svg svg_{curves_left() + kCurves + 30, bottom() + 76 + 20 * legend_lines()};
};

}  // namespace

std::string draw(const PriceMap& map) { return MapDrawing(map).text(); }

}  // namespace tutti::plan
