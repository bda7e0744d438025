#include "tutti/plan/choice.h"

#include <algorithm>
#include <charconv>
#include <limits>

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

std::optional<Algorithm> unless(Algorithm usual, Algorithm algorithm) {
  return algorithm == usual ? std::nullopt : std::optional(algorithm);
}

/// What comes behind "hybrid.": the algorithm inside of hosts, and maybe the one between them.
Status parse_levels(std::string_view inside, Choice& choice) {
  const auto between = take(inside, '.');
  const auto inner = parse_one_of(inside, algorithms_inside_hosts(), "inside of a host");
  if (!inner) {
    return inner.error();
  }
  choice.inside = unless(Request{}.inner, inner.value());
  if (between) {
    const auto outer = parse_one_of(*between, algorithms_between_hosts(), "between hosts");
    if (!outer) {
      return outer.error();
    }
    choice.between = unless(Request{}.outer, outer.value());
  }
  return {};
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
    const auto algorithm = parse_one_of(*between, algorithms_between_hosts(), "between hosts");
    if (!algorithm) {
      return algorithm.error();
    }
    choice.between = algorithm.value();
  }
  return text == kInSlices ? Result<Choice>(choice) : bad(fmt::format("'{}' is not {}", whole, kInSlices));
}

Result<Choice> parse_plan(std::string_view text) {
  const auto chunks = take_number(text, {.mark = '/', .what = "chunks", .most = Choice::kMostChunks});
  if (!chunks) {
    return chunks.error();
  }
  const auto leaders = take_number(text, {.mark = '@', .what = "leaders", .most = Choice::kMostLeaders});
  if (!leaders) {
    return leaders.error();
  }
  const auto levels = take(text, '.');
  const auto algorithm = parse_algorithm(text);
  if (!algorithm) {
    return algorithm.error();
  }
  Choice choice{.algorithm = algorithm.value(), .chunks = std::max(chunks.value(), 1U), .leaders = leaders.value()};
  if (choice.algorithm != Algorithm::hybrid && (choice.leaders != 0 || levels)) {
    return bad(fmt::format("'{}' has no {}: only hybrid plans do", text,
                           levels ? "algorithms inside of hosts and between them" : "leaders"));
  }
  if (levels) {
    if (auto good = parse_levels(*levels, choice); !good) {
      return good.error();
    }
  }
  return choice;
}

std::uint32_t place_in(const std::vector<Algorithm>& those, Algorithm algorithm) {
  const auto found = std::find(those.begin(), those.end(), algorithm);
  return found == those.end() ? 0 : static_cast<std::uint32_t>(found - those.begin()) + 1;
}

}  // namespace

Result<Choice> Choice::parse(std::string_view text) {
  if (text == kLibrary || text == kAtOnce) {
    return Choice{.kind = text == kLibrary ? Kind::library : Kind::at_once};
  }
  if (text.starts_with(kInSlices)) {
    return parse_slices(text);
  }
  return parse_plan(text);
}

std::string Choice::text() const {
  switch (kind) {
    case Kind::at_once: return std::string(kAtOnce);
    case Kind::library: return std::string(kLibrary);
    case Kind::plan:
    case Kind::in_slices: break;
  }
  std::string text(kind == Kind::plan ? to_string(algorithm) : kInSlices);
  if (kind == Kind::plan && (inside || between)) {
    text += fmt::format(".{}", to_string(inside.value_or(Request{}.inner)));
  }
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
  static_assert(kMostChunks < 1U << 13 && kLongestSlice / kSliceUnit < 1U << 13 && kMostLeaders < 1U << 8);
  const auto number = [](Algorithm which) { return static_cast<std::uint32_t>(which); };
  const bool is_plan = kind == Kind::plan;
  const auto amount = is_plan ? chunks : static_cast<std::uint32_t>(slice / kSliceUnit);
  const auto which = is_plan ? number(algorithm) : between ? number(*between) + 1 : 0;
  std::uint32_t inner = 0;  // 1 and on, of hybrids
  std::uint32_t outer = 0;
  if (is_plan && algorithm == Algorithm::hybrid) {
    inner = place_in(algorithms_inside_hosts(), inside.value_or(Request{}.inner));
    outer = place_in(algorithms_between_hosts(), between.value_or(Request{}.outer));
  }
  require(which < 16 && inner < 4 && outer < 8, "a mark has room for every algorithm");
  // A plan has a chunk at least, other kinds are above 0: so is the whole.
  return static_cast<std::uint32_t>(kind) << 30 | outer << 27 | inner << 25 | which << 21 | leaders << 13 | amount;
}

Request request_of(const Choice& choice, Op op, std::vector<std::vector<Rank>> hosts) {
  Request request{.op = op, .algorithm = choice.algorithm, .chunks = choice.chunks};
  std::size_t ranks = 0;
  auto smallest = std::numeric_limits<std::size_t>::max();
  for (const auto& host : hosts) {
    ranks += host.size();
    smallest = std::min(smallest, host.size());
  }
  request.ranks = static_cast<int>(ranks);
  if (choice.algorithm == Algorithm::hybrid) {
    request.leaders = static_cast<unsigned>(std::min<std::size_t>(std::max(choice.leaders, 1U), smallest));
    request.inner = choice.inside.value_or(request.inner);
    request.outer = choice.between.value_or(request.outer);
    request.hosts = std::move(hosts);
  }
  return request;
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
