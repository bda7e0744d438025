#pragma once

#include <array>
#include <vector>

#include "tutti/plan/network.h"
#include "tutti/plan/piece_bytes.h"
#include "tutti/plan/plan.h"

namespace tutti::plan {

/// When the ranks of a plan last touched their bytes: how many others each has touched since decides in which of its
/// caches they are. A plan that begins comes from another run of itself, in which it has touched all it has. One
/// thread.
class Touched {
 public:
  /// The fabric outlives it. On a network without caches it does nothing.
  Touched(const Plan& plan, std::size_t bytes_of_block, const Fabric& fabric);

  enum class Access { read, write };

  /// What bytes cost beyond the nearest cache.
  struct Cost {
    double seconds = 0;  ///< more
    double missed = 0;   ///< bytes that come from memory, and that go back there
  };

  /// A step (by its number) touches `bytes` of a span, from the one after `skipped` others. What the same step touched
  /// before, of longer ones that go in portions, does not count as a time of its own.
  Cost touch(std::size_t rank, Span span, std::size_t skipped, std::size_t bytes, std::uint32_t step,
             Access access = Access::read);

 private:
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  /// Neighbouring bytes that are touched at about the same time.
  struct Cell {
    double last = -1;  // on the rank's clock; below 0: in the run before
    double before = -1;
    std::uint32_t step = kNobody;  // who was last; somebody else was before
    bool written = false;          // since they came from memory
  };
  struct Memory {
    std::size_t bytes = 0;
    std::size_t cell_bytes = 1;
    std::vector<Cell> cells;
  };
  struct Owner {
    double footprint = 0;
    double clock = 0;  // bytes that it has touched
    std::array<Memory, 3> buffers;
  };

  std::size_t offset(Span span) const;
  double add(Cost& cost, double bytes, double distance, bool written) const;

  PieceBytes bytes_;
  const Processors& processors_;
  double crowd_;
  bool in_place_;
  std::vector<Owner> owners_;  // none: without caches
};

}  // namespace tutti::plan
