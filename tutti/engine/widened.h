#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tutti/engine/call.h"

namespace tutti::engine {

/// A sum that must not be rounded on its way, where sums of sums are sent on: 16- and 8-bit floats travel as float32,
/// and reproducible sums as accumulators. Rounded once, at the end. Keeps its memory from call to call. One thread at a
/// time.
class Widened {
 public:
  /// What elements of such a call travel as; nothing: as they are.
  static std::optional<kernels::DType> type_for(const Card& card);
  /// How many bytes its block has then.
  static std::size_t bytes_for(const Card& card);

  /// The call in that type, with copies of the inputs. Valid until the next one.
  const Call& begin(const Call& call);
  /// Rounds the results into the outputs of the call, a sum of so many ranks.
  void finish(const Call& call, int ranks);

 private:
  Call wide_;
  std::vector<std::byte> in_;
  std::vector<std::byte> out_;
};

}  // namespace tutti::engine
