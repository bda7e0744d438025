#include "tutti/plan/plan_json.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "tutti/base/whole_file.h"
#include "tutti/plan/proof_size.h"

namespace tutti::plan {
namespace {

using Json = nlohmann::json;  // the ordered one looks for each key among all before it
using OrderedJson = nlohmann::ordered_json;

constexpr int kDeepest = 16;
constexpr std::uint64_t kMostPieces = 1 << 24;

std::string_view to_string(Step::Kind kind) {
  return kind == Step::Kind::send ? "send" : kind == Step::Kind::receive ? "receive" : "combine";
}

OrderedJson to_json(Span span) {
  return {{"buffer", to_string(span.buffer)}, {"begin", span.begin}, {"count", span.count}};
}

OrderedJson to_json(const Program& program, const Step& step) {
  OrderedJson json{{"kind", to_string(step.kind)}};
  if (step.kind == Step::Kind::combine) {
    json["sources"] = OrderedJson::array();
    for (const auto& source : program.sources_of(step)) {
      json["sources"].push_back(to_json(source));
    }
  } else {
    json["peer"] = to_int(step.peer);
  }
  json["span"] = to_json(step.span);
  json["like"] = step.like;
  json["after"] = program.after_of(step);
  return json;
}

/// What can be said in a sentence, whoever wrote it.
bool is_name(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  const auto usual = [](unsigned char letter) {
    return (letter < 128 && std::isalnum(letter) != 0) ||
           std::string_view("_-./@ ").find(letter) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kLongest && std::all_of(text.begin(), text.end(), usual);
}

/// Reads values of one object after the other. The first thing that is wrong stays: what follows is read as nothing.
class Reader {
 public:
  std::string wrong;

  bool is_good() const { return wrong.empty(); }

  void complain(const std::string& place, std::string_view expected) {
    if (wrong.empty()) {
      wrong = fmt::format("{}: expected {}", place.empty() ? "the whole" : place, expected);
    }
  }

  /// Null where it is not there.
  static const Json* find(const Json& json, const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return json.is_object() && found != json.end() ? &*found : nullptr;
  }

  void expect_keys(const Json& json, const std::string& place, const std::vector<std::string_view>& keys) {
    if (!json.is_object()) {
      complain(place, fmt::format("an object with {}", fmt::join(keys, ", ")));
      return;
    }
    for (const auto& [key, value] : json.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        complain(place, fmt::format("{}, and no {}", fmt::join(keys, ", "),
                                    is_name(key) ? fmt::format("'{}'", key) : "other"));
      }
    }
  }

  const Json& list(const Json& json, const std::string& place, const char* key, bool needed = true) {
    static const Json kNothing = Json::array();
    const auto* value = find(json, key);
    if (value == nullptr ? needed : !value->is_array()) {
      complain(join(place, key), "a list");
    }
    return value != nullptr && value->is_array() ? *value : kNothing;
  }

  std::string text(const Json& json, const std::string& place, const char* key, const char* expected) {
    const auto* value = find(json, key);
    if (value == nullptr || !value->is_string()) {
      complain(join(place, key), expected);
      return "";
    }
    return value->get<std::string>();
  }

  std::optional<std::uint32_t> number(const Json& value, const std::string& place, std::uint64_t most) {
    // What is above 64 bits is read as a fraction, and what has a sign as negative.
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
      complain(place, fmt::format("a whole number from 0 to {}", most));
      return std::nullopt;
    }
    return static_cast<std::uint32_t>(value.get<std::uint64_t>());
  }

  /// Where it is not there: `otherwise`, or an error where that is nothing.
  std::uint32_t number(const Json& json, const std::string& place, const char* key, std::uint64_t most,
                       std::optional<std::uint32_t> otherwise = {}) {
    const auto* value = find(json, key);
    if (value == nullptr && otherwise) {
      return *otherwise;
    }
    return number(value == nullptr ? Json() : *value, join(place, key), most).value_or(0);
  }

  static std::string join(const std::string& place, std::string_view key) {
    return place.empty() ? std::string(key) : fmt::format("{}.{}", place, key);
  }
};

constexpr std::uint64_t kAnyNumber = std::numeric_limits<std::uint32_t>::max();

Span read_span(Reader& reader, const Json& json, const std::string& place) {
  reader.expect_keys(json, place, {"buffer", "begin", "count"});
  const auto name = reader.text(json, place, "buffer", "input, output or scratch");
  Span span{.begin = reader.number(json, place, "begin", kAnyNumber),
            .count = reader.number(json, place, "count", kAnyNumber)};
  for (const auto buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
    if (to_string(buffer) == name) {
      span.buffer = buffer;
      return span;
    }
  }
  reader.complain(Reader::join(place, "buffer"), "input, output or scratch");
  return span;
}

void read_step(Reader& reader, const Json& json, const std::string& place, std::uint32_t pieces, Program& program) {
  Step step;
  const auto kind = reader.text(json, place, "kind", "send, receive or combine");
  if (kind == "combine") {
    reader.expect_keys(json, place, {"kind", "sources", "span", "like", "after"});
  } else {
    reader.expect_keys(json, place, {"kind", "peer", "span", "like", "after"});
    step.kind = kind == "send" ? Step::Kind::send : Step::Kind::receive;
    step.peer =
        Rank{static_cast<std::int32_t>(reader.number(json, place, "peer", std::numeric_limits<std::int32_t>::max()))};
    if (kind != "send" && kind != "receive") {
      reader.complain(Reader::join(place, "kind"), "send, receive or combine");
    }
  }
  const auto* span = Reader::find(json, "span");
  step.span = read_span(reader, span == nullptr ? Json() : *span, Reader::join(place, "span"));
  step.sources.begin = static_cast<std::uint32_t>(program.sources.size());
  if (kind == "combine") {
    for (const auto& source : reader.list(json, place, "sources")) {
      program.sources.push_back(read_span(reader, source, Reader::join(place, "sources")));
    }
  }
  step.sources.count = static_cast<std::uint32_t>(program.sources.size()) - step.sources.begin;
  step.after.begin = static_cast<std::uint32_t>(program.after.size());
  for (const auto& before : reader.list(json, place, "after", false)) {
    program.after.push_back(reader.number(before, Reader::join(place, "after"), kAnyNumber).value_or(0));
  }
  step.after.count = static_cast<std::uint32_t>(program.after.size()) - step.after.begin;
  // Only of scratch it does not follow from the place.
  const bool follows = step.span.buffer != Buffer::scratch || pieces == 1;
  step.like = reader.number(json, place, "like", kAnyNumber,
                            follows ? std::optional(step.span.begin % std::max(pieces, 1U)) : std::nullopt);
  program.steps.push_back(step);
}

Program read_program(Reader& reader, const Json& json, const std::string& place, std::uint32_t pieces) {
  Program program;
  reader.expect_keys(json, place, {"scratch_pieces", "steps"});
  program.scratch_pieces = reader.number(json, place, "scratch_pieces", kMostPieces, 0);
  const auto& steps = reader.list(json, place, "steps");
  for (std::size_t i = 0; i < steps.size() && reader.is_good(); ++i) {
    read_step(reader, steps[i], fmt::format("{}.steps[{}]", place, i), pieces, program);
  }
  return program;
}

/// Of all plans of a file together.
Status add_to(ProofSize& size, const Plan& plan) {
  auto good = size.add(plan.shape);
  for (std::size_t rank = 0; rank < plan.programs.size() && good; ++rank) {
    good = size.add(plan.shape, plan.programs[rank]);
  }
  return good;
}

NamedPlan read_plan(Reader& reader, const Json& json, const std::string& place, ProofSize& size) {
  NamedPlan named;
  auto& shape = named.plan.shape;
  reader.expect_keys(json, place, {"op", "algorithm", "root", "pieces", "ranks"});
  const auto op = parse_op(reader.text(json, place, "op", "an operation, as \"all_reduce\""));
  if (!op && reader.is_good()) {
    reader.wrong = fmt::format("{}: {}", Reader::join(place, "op"), op.error().message);
  }
  shape.op = op ? op.value() : Op::all_reduce;
  const bool is_named = Reader::find(json, "algorithm") != nullptr;
  named.algorithm = is_named ? reader.text(json, place, "algorithm", "a name") : "plan";
  if (!is_name(named.algorithm)) {
    reader.complain(Reader::join(place, "algorithm"), "a short name of letters, digits, and some of _-./@");
  }
  const auto& ranks = reader.list(json, place, "ranks");
  shape.ranks = static_cast<int>(ranks.size());
  shape.pieces = reader.number(json, place, "pieces", kMostPieces);
  if (ranks.empty() || shape.pieces == 0) {
    reader.complain(Reader::join(place, ranks.empty() ? "ranks" : "pieces"), "at least one");
  }
  shape.root =
      Rank{static_cast<std::int32_t>(reader.number(json, place, "root", ranks.empty() ? 0 : ranks.size() - 1, 0))};
  for (std::size_t rank = 0; rank < ranks.size() && reader.is_good(); ++rank) {
    named.plan.programs.push_back(
        read_program(reader, ranks[rank], Reader::join(place, fmt::format("ranks[{}]", rank)), shape.pieces));
  }
  if (!reader.is_good()) {
    return named;
  }
  if (auto good = add_to(size, named.plan); !good) {
    reader.wrong = fmt::format("{}: {} ranks with blocks of {} pieces: {}", place.empty() ? "the plan" : place,
                               ranks.size(), shape.pieces, good.error().message);
  }
  return named;
}

/// Brackets within brackets take memory before anybody can say that they mean nothing.
bool is_too_deep(const std::string& text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (quoted && letter == '\\') {
      ++i;
    } else if (letter == '"') {
      quoted = !quoted;
    } else if (!quoted && (letter == '[' || letter == '{')) {
      if (++depth > kDeepest) {
        return true;
      }
    } else if (!quoted && (letter == ']' || letter == '}')) {
      --depth;
    }
  }
  return false;
}

}  // namespace

std::string to_json(const std::vector<NamedPlan>& plans) {
  auto all = OrderedJson::array();
  for (const auto& [algorithm, plan] : plans) {
    OrderedJson json{{"op", to_string(plan.shape.op)}, {"algorithm", algorithm}};
    if (has_root(plan.shape.op)) {
      json["root"] = to_int(plan.shape.root);
    }
    json["pieces"] = plan.shape.pieces;
    json["ranks"] = OrderedJson::array();
    for (const auto& program : plan.programs) {
      auto steps = OrderedJson::array();
      for (const auto& step : program.steps) {
        steps.push_back(to_json(program, step));
      }
      json["ranks"].push_back({{"scratch_pieces", program.scratch_pieces}, {"steps", std::move(steps)}});
    }
    all.push_back(std::move(json));
  }
  return all.dump();
}

Result<std::vector<NamedPlan>> parse_plans(const std::string& text, const std::string& where) {
  const auto fails = [&](std::string_view sentence) {
    return Error{Code::invalid_argument, fmt::format("{}: {}", where, sentence)};
  };
  if (is_too_deep(text)) {
    return fails("not a plan: lists within lists within lists");
  }
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    return fails(fmt::format("not JSON, from line {} on", std::count(text.begin(), end, '\n') + 1));
  } catch (const Json::exception&) {  // a number without end
    return fails("not JSON");
  }
  Reader reader;
  ProofSize size;
  std::vector<NamedPlan> plans;
  if (!json.is_array()) {
    plans.push_back(read_plan(reader, json, "", size));
  }
  for (std::size_t i = 0; json.is_array() && i < json.size() && reader.is_good(); ++i) {
    plans.push_back(read_plan(reader, json[i], fmt::format("[{}]", i), size));
  }
  if (!reader.is_good()) {
    return fails(reader.wrong);
  }
  if (plans.empty()) {
    return fails("there is no plan in it");
  }
  return plans;
}

Result<std::vector<NamedPlan>> read_plans(const std::string& path) {
  const auto text = read_whole(path, Source::files_and_pipes);
  return text ? parse_plans(text.value(), path) : text.error();
}

}  // namespace tutti::plan
