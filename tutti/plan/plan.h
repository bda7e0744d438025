#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/rank.h"

namespace tutti::plan {

/// What a plan brings about. `root` counts for those that have one.
enum class Op { all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, gather, scatter };

std::string_view to_string(Op op);
Result<Op> parse_op(std::string_view text);
bool reduces(Op op);
bool has_root(Op op);

/// The memory of one rank that its program works in.
enum class Buffer : std::uint8_t {
  input,    ///< what the rank contributes; never written, but may be the same memory as the output (see `Shape`)
  output,   ///< where the result comes to be
  scratch,  ///< the runner's, for what is on its way
};

std::string_view to_string(Buffer buffer);

/// How a plan divides what it moves. A block is what one rank contributes, or gets; each is divided into the same
/// number of pieces, of about the same size. Pieces are the smallest thing a plan speaks of: it knows no bytes.
struct Shape {
  Op op = Op::all_reduce;
  int ranks = 1;
  Rank root{0};
  std::uint32_t pieces = 1;  ///< of a block

  std::uint32_t input_blocks(Rank rank) const;
  std::uint32_t output_blocks(Rank rank) const;
};

/// Neighbouring pieces of one buffer.
struct Span {
  Buffer buffer = Buffer::output;
  std::uint32_t begin = 0;
  std::uint32_t count = 0;

  std::uint32_t end() const { return begin + count; }
  /// The `index`th of `parts` equal parts; `count` must be a multiple of them.
  Span part(std::size_t index, std::size_t parts) const;
  bool operator==(const Span&) const = default;
};

/// Where an input lies when it is the same memory as the output, as callers may have it: the whole (all_reduce, reduce,
/// broadcast), this rank's block of the output (all_gather, gather), or the output its block of the input
/// (reduce_scatter, scatter). Spans that name the same memory become equal; others stay as they are.
Span in_place(const Shape& shape, Rank rank, Span span);

/// One thing that one rank does. It may begin when the steps in `after` are over; steps that do not wait for each other
/// may be done in any order, or at once.
struct Step {
  enum class Kind : std::uint8_t {
    send,     ///< `span` to `peer`. The k-th to a peer is what that one's k-th receive from here gets
    receive,  ///< into `span` from `peer`
    combine,  ///< `span` becomes the first source, then each next one is added to it; one source: a copy
  };
  /// A part of a list that all steps of a program share.
  struct Part {
    std::uint32_t begin = 0;
    std::uint32_t count = 0;
  };

  Kind kind = Kind::combine;
  Rank peer{-1};
  Span span;
  /// Which piece of a block the first one of `span` holds. Pieces differ in length at the end of a block, and what is
  /// in scratch has to be as long as what it is made of.
  std::uint32_t like = 0;
  Part sources;
  Part after;
};

/// What one rank does, in an order in which it could be done one after the other, were messages buffered.
struct Program {
  std::vector<Step> steps;
  std::vector<Span> sources;
  std::vector<std::uint32_t> after;  ///< numbers of earlier steps
  std::uint32_t scratch_pieces = 0;

  std::span<const Span> sources_of(const Step& step) const {
    return std::span(sources).subspan(step.sources.begin, step.sources.count);
  }
  std::span<const std::uint32_t> after_of(const Step& step) const {
    return std::span(after).subspan(step.after.begin, step.after.count);
  }
};

/// All ranks' programs.
struct Plan {
  Shape shape;
  std::vector<Program> programs;

  /// How many pieces that buffer of a rank has.
  std::uint32_t pieces_of(Rank rank, Buffer buffer) const;
};

}  // namespace tutti::plan
