#include "tutti/observe/timeline_reader.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace tutti::observe {
namespace {

using nlohmann::json;

/// A null where there is no such field.
const json& field(const json& object, const char* name) {
  static const json kNone;
  const auto found = object.find(name);  // the end for what is no object
  return found == object.end() ? kNone : *found;
}

const json& cell(const json& columns, const char* name, std::size_t row) {
  static const json kNone;
  const auto& column = field(columns, name);
  return column.is_array() && row < column.size() ? column[row] : kNone;
}

std::size_t rows_of(const json& columns, const char* first) {
  const auto& column = field(columns, first);
  return column.is_array() ? column.size() : 0;
}

std::optional<double> number_of(const json& value) {
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

/// Whole numbers that every reader of JSON tells apart; others are none.
std::optional<std::int64_t> integer_of(const json& value) {
  constexpr double kMost = 9007199254740992;  // 2^53
  const auto number = value.is_number_integer() ? number_of(value) : std::nullopt;
  return number && std::abs(*number) < kMost ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

struct Span {
  double begin_ms;
  double end_ms;
};

std::optional<Span> span_of(const json& columns, std::size_t row) {
  const auto begin = number_of(cell(columns, "begin_ms", row));
  const auto end = number_of(cell(columns, "end_ms", row));
  return begin && end && *begin <= *end ? std::optional(Span{*begin, *end}) : std::nullopt;
}

std::vector<ReadPhase> read_phases(const json& columns) {
  std::vector<ReadPhase> phases;
  for (std::size_t row = 0; row < rows_of(columns, "name"); ++row) {
    const auto& name = cell(columns, "name", row);
    if (const auto span = span_of(columns, row); span && name.is_string()) {
      phases.push_back({name.get<std::string>(), span->begin_ms, span->end_ms});
    }
  }
  return phases;
}

std::vector<ReadBucket> read_buckets(const json& columns, const json& bytes) {
  std::vector<ReadBucket> buckets;
  for (std::size_t row = 0; row < rows_of(columns, "bucket"); ++row) {
    const auto number = integer_of(cell(columns, "bucket", row));
    const auto span = span_of(columns, row);
    if (!number || !span) {
      continue;
    }
    ReadBucket bucket{.bucket = *number,
                      .bytes = std::nullopt,
                      .ready_ms = number_of(cell(columns, "ready_ms", row)),
                      .begin_ms = span->begin_ms,
                      .end_ms = span->end_ms};
    if (bytes.is_array() && *number >= 0 && static_cast<std::size_t>(*number) < bytes.size()) {
      bucket.bytes = integer_of(bytes[static_cast<std::size_t>(*number)]);
    }
    buckets.push_back(bucket);
  }
  return buckets;
}

}  // namespace

std::vector<ReadTimeline> read_timelines(const nlohmann::json& run) {
  std::vector<ReadTimeline> timelines;
  const auto& bytes = field(run, "bucket_bytes");
  const auto& recorded = field(run, "timelines");
  for (std::size_t i = 0; recorded.is_array() && i < recorded.size(); ++i) {
    const auto step = integer_of(field(recorded[i], "step"));
    const auto& ranks = field(recorded[i], "ranks");
    if (!step || !ranks.is_array()) {
      continue;
    }
    ReadTimeline timeline{.step = *step, .ranks = {}};
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      timeline.ranks.push_back(
          {.rank = integer_of(field(ranks[rank], "rank")).value_or(static_cast<std::int64_t>(rank)),
           .phases = read_phases(field(ranks[rank], "phases")),
           .buckets = read_buckets(field(ranks[rank], "buckets"), bytes)});
    }
    timelines.push_back(std::move(timeline));
  }
  return timelines;
}

}  // namespace tutti::observe
