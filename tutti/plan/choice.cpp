#include "tutti/plan/choice.h"

#include <charconv>

#include <fmt/format.h>

#include "tutti/base/bytes.h"

namespace tutti::plan {
namespace {

constexpr std::string_view kOwn = "own";
constexpr std::string_view kAtOnce = "at_once";
constexpr std::string_view kInSlices = "in_slices";
constexpr std::string_view kLibrary = "library";

Error bad(std::string sentence) { return {Code::invalid_argument, std::move(sentence)}; }

/// What comes behind a mark, taken off the text.
std::optional<std::string_view> take(std::string_view& text, char mark) {
  const auto at = text.find(mark);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const auto behind = text.substr(at + 1);
  text = text.substr(0, at);
  return behind;
}

struct Counted {
  char mark;
  std::string_view what;
  unsigned most;
};

/// The number behind a mark, taken off the text; 0 when the mark is not there.
Result<unsigned> take_number(std::string_view& text, const Counted& counted) {
  const auto whole = text;
  const auto digits = take(text, counted.mark);
  if (!digits) {
    return 0U;
  }
  unsigned number = 0;
  const auto* const last = digits->data() + digits->size();
  const auto [end, error] = std::from_chars(digits->data(), last, number);
  if (error != std::errc() || end != last || number < 1 || number > counted.most) {
    return bad(
        fmt::format("'{}': after '{}' comes a number of {}, 1 to {}", whole, counted.mark, counted.what, counted.most));
  }
  return number;
}

Result<Choice> parse_slices(std::string_view text) {
  Choice choice{.kind = Choice::Kind::in_slices};
  const auto whole = text;
  if (const auto size = take(text, '/')) {
    const auto bytes = parse_bytes(*size);
    if (!bytes || bytes.value() % Choice::kSliceUnit != 0 || bytes.value() > Choice::kLongestSlice) {
      return bad(fmt::format("'{}': after '/' comes the size of a slice, in whole Ki, up to {}", whole,
                             spell_bytes(Choice::kLongestSlice)));
    }
    choice.slice = bytes.value();
  }
  const auto leaders = take_number(text, {.mark = '@', .what = "leaders", .most = Choice::kMostLeaders});
  if (!leaders) {
    return leaders.error();
  }
  choice.leaders = leaders.value();
  if (const auto between = take(text, '.')) {
    const auto algorithm = parse_algorithm(*between);
    if (!algorithm) {
      return algorithm.error();
    }
    if (!can(algorithm.value(), Op::all_reduce) || algorithm.value() == Algorithm::hybrid) {
      return bad(fmt::format("'{}': between hosts comes an algorithm for all_reduce, other than hybrid", whole));
    }
    choice.between = algorithm.value();
  }
  return text == kInSlices ? Result<Choice>(choice) : bad(fmt::format("'{}' is not {}", whole, kInSlices));
}

}  // namespace

Result<Choice> Choice::parse(std::string_view text) {
  if (text == kLibrary || text == kAtOnce) {
    return Choice{.kind = text == kLibrary ? Kind::library : Kind::at_once};
  }
  if (text.starts_with(kInSlices)) {
    return parse_slices(text);
  }
  const auto chunks = take_number(text, {.mark = '/', .what = "chunks", .most = kMostChunks});
  if (!chunks) {
    return chunks.error();
  }
  const auto leaders = take_number(text, {.mark = '@', .what = "leaders", .most = kMostLeaders});
  if (!leaders) {
    return leaders.error();
  }
  const auto algorithm = parse_algorithm(text);
  if (!algorithm) {
    return algorithm.error();
  }
  if (leaders.value() != 0 && algorithm.value() != Algorithm::hybrid) {
    return bad(fmt::format("'{}' has no leaders: only hybrid plans do", text));
  }
  return Choice{.algorithm = algorithm.value(), .chunks = std::max(chunks.value(), 1U), .leaders = leaders.value()};
}

std::string Choice::text() const {
  switch (kind) {
    case Kind::at_once: return std::string(kAtOnce);
    case Kind::library: return std::string(kLibrary);
    case Kind::plan:
    case Kind::in_slices: break;
  }
  std::string text(kind == Kind::plan ? to_string(algorithm) : kInSlices);
  if (between) {
    text += fmt::format(".{}", to_string(*between));
  }
  if (leaders != 0) {
    text += fmt::format("@{}", leaders);
  }
  if (slice != 0) {
    text += fmt::format("/{}", spell_bytes(slice));
  } else if (kind == Kind::plan && chunks != 1) {
    text += fmt::format("/{}", chunks);
  }
  return text;
}

std::uint32_t Choice::mark() const {
  const auto number = [](Algorithm which) { return static_cast<std::uint32_t>(which); };
  const auto amount = kind == Kind::plan ? chunks : static_cast<std::uint32_t>(slice / kSliceUnit);
  const auto which = kind == Kind::plan ? number(algorithm) : between ? number(*between) + 1 : 0;
  return (static_cast<std::uint32_t>(kind) + 1) << 28 | which << 23 | leaders << 14 | amount;
}

std::string text_of(const std::optional<Choice>& choice) { return choice ? choice->text() : std::string(kOwn); }

Result<Choices> Choices::parse(std::string_view text) {
  Choices choices;
  std::size_t before = 0;
  for (bool first = true; first || !text.empty(); first = false) {
    auto entry = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    std::size_t from = 0;
    const auto colon = entry.find(':');
    if (first == (colon != std::string_view::npos)) {
      const auto* const rule = first ? "the first choice is for sizes from 0 on, and has none before it"
                                     : "before every choice but the first comes a size, as in 64Ki:ring";
      return bad(fmt::format("'{}': {}", entry, rule));
    }
    if (!first) {
      const auto bytes = parse_bytes(entry.substr(0, colon));
      if (!bytes) {
        return bytes.error();
      }
      from = bytes.value();
      if (from <= before) {
        return bad(fmt::format("'{}': sizes go up from one choice to the next", entry));
      }
      entry.remove_prefix(colon + 1);
    }
    before = from;
    if (entry == kOwn) {
      choices.add(from, std::nullopt);
      continue;
    }
    const auto choice = Choice::parse(entry);
    if (!choice) {
      return choice.error();
    }
    choices.add(from, choice.value());
  }
  return choices;
}

void Choices::add(std::size_t bytes, std::optional<Choice> choice) {
  const auto mark = [](const std::optional<Choice>& which) { return which ? which->mark() : 0; };
  if (mark(choice) != (entries_.empty() ? 0 : mark(entries_.back().choice))) {
    entries_.push_back({bytes, choice});
  }
}

std::string Choices::text() const {
  std::string text(entries_.empty() || entries_.front().from != 0 ? kOwn : "");
  for (const auto& entry : entries_) {
    const auto name = text_of(entry.choice);
    text += entry.from == 0 ? name : fmt::format(",{}:{}", spell_bytes(entry.from), name);
  }
  return text;
}

}  // namespace tutti::plan
