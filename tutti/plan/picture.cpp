#include "tutti/plan/picture.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "tutti/plan/events.h"
#include "tutti/plan/svg.h"

namespace tutti::plan {
namespace {

constexpr int kColumn = 46;
constexpr int kRow = 56;
constexpr int kLeft = 70;
constexpr int kTop = 34;

/// The column of each step: after all that it waits for; both ends of a message stand in one.
std::vector<int> columns_of(const Plan& plan, const Events& events) {
  std::vector<int> columns(events.size(), 0);
  int last = 0;
  const auto order = order_events(plan, events, false);
  for (const auto event : order) {
    const auto place = [&](std::uint32_t end) {
      const auto rank = events.rank(end);
      const auto& program = plan.programs[to_index(rank)];
      int column = 0;
      for (const auto before : program.after_of(program.steps[events.step(end)])) {
        column = std::max(column, columns[events.number(rank, before)] + 1);
      }
      if (const auto earlier = events.earlier_message(end)) {
        column = std::max(column, columns[*earlier] + 1);
      }
      return column;
    };
    const auto other = events.other_end(event);
    columns[event] = std::max(place(event), other ? place(*other) : 0);
    last = std::max(last, columns[event]);
  }
  // What never happens stands behind all that does.
  std::vector<bool> happens(events.size(), false);
  for (const auto event : order) {
    happens[event] = true;
  }
  for (std::uint32_t event = 0; event < events.size(); ++event) {
    columns[event] = happens[event] ? columns[event] : last + 1;
  }
  return columns;
}

class Drawing {
 public:
  Drawing(const Plan& plan, const Flaw* flaw)
      : plan_(plan), flaw_(flaw), events_(plan), columns_(columns_of(plan, events_)) {}

  std::string text() {
    svg_.add(
        "<style>svg{{background:#fff;color:#222}}text{{fill:#222}}.lane{{stroke:#ddd}}"
        "@media(prefers-color-scheme:dark){{svg{{background:#151515;color:#ddd}}text{{fill:#ddd}}.lane{{stroke:#333}}}}"
        "</style>");
    svg_.add(
        R"(<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker></defs>)");
    svg_.add("<text x='8' y='18'>{}, {} ranks: time goes to the right</text>", to_string(plan_.shape.op),
             plan_.shape.ranks);
    const int right = width() - 8;
    for (std::size_t rank = 0; rank < plan_.programs.size(); ++rank) {
      svg_.add("<text x='8' y='{}'>rank {}</text><line class='lane' x1='{}' x2='{}' y1='{}' y2='{}'/>", y(rank) + 4,
               rank, kLeft - 8, right, y(rank), y(rank));
    }
    for (std::uint32_t event = 0; event < events_.size(); ++event) {
      draw_event(event);
    }
    if (flaw_) {
      svg_.add("<text x='8' y='{}' style='fill:#c00'>{}</text>", rows() + 18, Svg::escaped(flaw_->sentence));
    }
    return std::move(svg_).finish();
  }

 private:
  int width() const {
    const int columns = columns_.empty() ? 1 : *std::max_element(columns_.begin(), columns_.end()) + 1;
    return kLeft + columns * kColumn + 20;
  }
  int rows() const { return y(plan_.programs.size()) - kRow / 2; }

  static int y(std::size_t rank) { return kTop + static_cast<int>(rank) * kRow + kRow / 2; }
  int x(std::uint32_t event) const { return kLeft + columns_[event] * kColumn; }

  bool is_flawed(std::uint32_t event) const {
    return flaw_ && flaw_->step && events_.number(flaw_->rank, *flaw_->step) == event;
  }

  std::string color(std::uint32_t event, Span span) const {
    if (is_flawed(event)) {
      return "#d00";
    }
    const auto pieces = std::max(plan_.shape.pieces * static_cast<std::uint32_t>(plan_.shape.ranks), 1U);
    return fmt::format("hsl({},60%,45%)", 200 + span.begin * 300 / pieces % 300);
  }

  void draw_event(std::uint32_t event) {
    const auto rank = events_.rank(event);
    const auto& step = plan_.programs[to_index(rank)].steps[events_.step(event)];
    const auto title = Svg::escaped(describe(plan_, rank, events_.step(event)));
    const auto shade = color(event, step.span);
    // What stands in one place is set apart a little.
    const auto nudge = 5 * (placed_[{rank, columns_[event]}]++ % 5);
    if (step.kind == Step::Kind::combine) {
      svg_.add("<rect x='{}' y='{}' width='12' height='12' fill='{}'><title>{}</title></rect>", x(event) + nudge,
               y(to_index(rank)) - 6 + nudge, shade, title);
      return;
    }
    const auto other = events_.other_end(event);
    if (step.kind == Step::Kind::receive && other) {
      return;  // drawn from the other end
    }
    const auto to = other ? to_index(events_.rank(*other)) : to_index(rank);
    const int down = to > to_index(rank) ? 1 : -1;
    svg_.add(
        "<line x1='{}' y1='{}' x2='{}' y2='{}' stroke='{}' stroke-width='{}' "
        "marker-end='url(#tip)'><title>{}</title></line>",
        x(event) + nudge, y(to_index(rank)) + 4 * down, x(event) + kColumn * 2 / 3 + nudge, y(to) - 8 * down,
        other && is_flawed(*other) ? "#d00" : shade, is_flawed(event) ? 3 : 1.6, title);
  }

  const Plan& plan_;
  const Flaw* flaw_;
  Events events_;
  std::vector<int> columns_;
  std::map<std::pair<Rank, int>, int> placed_;
  Svg svg_{width(), rows() + (flaw_ ? 40 : 10)};
};

/// Without waits for what does not come before: such a plan has no order in which it could be drawn.
Plan with_earlier_waits(Plan plan) {
  for (auto& program : plan.programs) {
    auto steps = program.steps;
    std::vector<std::uint32_t> after;
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      const auto begin = static_cast<std::uint32_t>(after.size());
      const auto before = program.after_of(program.steps[i]);
      std::copy_if(before.begin(), before.end(), std::back_inserter(after),
                   [i](std::uint32_t step) { return step < i; });
      steps[i].after = {begin, static_cast<std::uint32_t>(after.size()) - begin};
    }
    program.steps = std::move(steps);
    program.after = std::move(after);
  }
  return plan;
}

}  // namespace

std::string draw(const Plan& plan, const Flaw* flaw) {
  if (flaw && flaw->kind == Flaw::Kind::malformed) {
    const auto drawable = with_earlier_waits(plan);
    return Drawing(drawable, flaw).text();
  }
  return Drawing(plan, flaw).text();
}

}  // namespace tutti::plan
