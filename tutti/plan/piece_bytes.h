#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::plan {

/// How many bytes the pieces of a block have: all begin at a cache line, the last ones may be short or empty. Who runs
/// a plan and who prices it divide a block alike.
struct PieceBytes {
  PieceBytes(std::size_t bytes_of_block, std::uint32_t pieces_of_block)
      : block(bytes_of_block), pieces(pieces_of_block), each(block) {
    constexpr std::size_t kLine = 64;
    if (pieces > 1) {
      const auto lines = (block + kLine - 1) / kLine;
      each = (lines + pieces - 1) / pieces * kLine;
    }
  }

  std::size_t begin(std::uint32_t piece) const { return piece * each < block ? piece * each : block; }
  /// Of `count` pieces, the first of which is like piece `like` of a block.
  std::size_t length(std::uint32_t like, std::uint32_t count) const {
    return pieces == 1 ? count * block : begin(like + count) - begin(like);
  }

  std::size_t block;
  std::uint32_t pieces;
  std::size_t each;  ///< of a whole piece
};

}  // namespace tutti::plan
