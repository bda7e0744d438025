#pragma once

#include <array>
#include <initializer_list>
#include <optional>

#include "tutti/plan/plan.h"

namespace tutti::plan {

/// Writes one rank's program down. Steps are given as if they were done one after the other; which ones a step has to
/// wait for follows from the pieces that it reads and writes, so that everything else may overlap.
class Builder {
 public:
  Builder(const Shape& shape, Rank me);

  const Shape& shape() const { return shape_; }
  Rank me() const { return me_; }

  void send(Rank to, Span span);
  /// Into the output.
  void receive(Rank from, Span span) { receive(from, span, span); }
  /// Into scratch; `like` are pieces of the input or output of which those are.
  void receive(Rank from, Span span, Span like);
  void combine(Span to, std::span<const Span> sources);
  void combine(Span to, std::initializer_list<Span> sources) {
    combine(to, std::span(sources.begin(), sources.size()));
  }
  /// Nothing when both are the same.
  void copy(Span to, Span from);

  /// All of a buffer's block.
  Span input(std::size_t block = 0) const { return block_of(Buffer::input, block); }
  Span output(std::size_t block = 0) const { return block_of(Buffer::output, block); }
  /// So many pieces that nobody else uses.
  Span scratch(std::uint32_t pieces);

  Program take() && { return std::move(program_); }

 private:
  /// Who used a piece last.
  struct Uses {
    std::optional<std::uint32_t> writer;
    std::vector<std::uint32_t> readers;  // since then
  };

  Span block_of(Buffer buffer, std::size_t block) const;
  void begin(Step::Kind kind, Rank peer, Span span);
  void reads(Span span);
  void writes(Span span);
  void finish();
  std::vector<Uses>& uses_of(Buffer buffer) { return uses_[static_cast<std::size_t>(buffer)]; }
  std::uint32_t like_of(Span span) const;
  void set_like(Span span, std::uint32_t like);

  Shape shape_;
  Rank me_;
  Program program_;
  Step step_;
  std::array<std::vector<Uses>, 3> uses_;
  std::vector<std::uint32_t> scratch_like_;  // which piece of a block each piece of scratch holds
};

}  // namespace tutti::plan
