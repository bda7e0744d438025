#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/plan/algorithms.h"

namespace tutti::plan {

/// By what an operation is to be run.
struct Choice {
  enum class Kind : std::uint8_t {
    plan,       ///< a plan over links
    at_once,    ///< the engine's own: everyone lays down, or sends, all that it has, and takes what it needs
    in_slices,  ///< the engine's own: everyone takes a slice, adds it up, and hands it out
    library,    ///< MPI's own collective
  };

  Kind kind = Kind::plan;
  Algorithm algorithm = Algorithm::ring;  ///< of a plan
  unsigned chunks = 1;                    ///< of a plan
  unsigned leaders = 0;                   ///< of each host, for hybrid plans and slices; 0: as usual there
  std::optional<Algorithm> inside = {};   ///< of hybrid plans: inside of hosts, when not the usual one
  std::optional<Algorithm> between = {};  ///< of hybrid plans and slices: between hosts, when not the usual one
  std::size_t slice = 0;                  ///< of slices: bytes that move at once; 0: as many as usual

  static constexpr unsigned kMostChunks = plan::kMostChunks;
  static constexpr unsigned kMostLeaders = 255;
  static constexpr std::size_t kSliceUnit = 1024;
  static constexpr std::size_t kLongestSlice = 4095 * kSliceUnit;

  /// From "ring", "ring/4" for four chunks, "hybrid@2/4" for two leaders, "hybrid.ring.tree" (inside of hosts around a
  /// ring, between them along a tree), "at_once", "in_slices", "in_slices.ring@2/512Ki" (between hosts around a ring,
  /// by two leaders, half a MiB each), "library".
  static Result<Choice> parse(std::string_view text);
  std::string text() const;
  /// What ranks compare: different for different choices, never 0.
  std::uint32_t mark() const;
  bool operator==(const Choice&) const = default;
};

/// The plan that a choice is, over these hosts: they matter to hybrids alone, of which no host has more leaders than
/// ranks.
Request request_of(const Choice& choice, Op op, std::vector<std::vector<Rank>> hosts);

/// "own" for nothing.
std::string text_of(const std::optional<Choice>& choice);

/// Choices by size. Nothing chosen for a size: as the engine thinks best.
class Choices {
 public:
  Choices() = default;
  /// The same for all sizes.
  Choices(const Choice& choice) : entries_{{0, choice}} {}

  /// From "at_once,64Ki:in_slices,4Mi:ring/4": the first for sizes from 0 on, each other from so many bytes on. "own"
  /// is what the engine thinks best.
  static Result<Choices> parse(std::string_view text);
  std::string text() const;

  /// From so many bytes on; `bytes` are more than those of the call before. What goes on as before is no entry.
  void add(std::size_t bytes, std::optional<Choice> choice);

  /// Null: as the engine thinks best.
  const Choice* find(std::size_t bytes) const {
    const Choice* found = nullptr;
    for (const auto& entry : entries_) {
      if (entry.from > bytes) {
        break;
      }
      found = entry.choice ? &*entry.choice : nullptr;
    }
    return found;
  }

  struct Entry {
    std::size_t from = 0;
    std::optional<Choice> choice;
    bool operator==(const Entry&) const = default;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  bool operator==(const Choices&) const = default;

 private:
  std::vector<Entry> entries_;  // in order of bytes, neighbours different; none before a first one of nothing
};

}  // namespace tutti::plan
