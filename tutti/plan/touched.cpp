#include "tutti/plan/touched.h"

#include <algorithm>

#include "tutti/plan/footprint.h"

namespace tutti::plan {

Touched::Touched(const Plan& plan, std::size_t bytes_of_block, const Fabric& fabric)
    : bytes_(bytes_of_block, plan.shape.pieces),
      processors_(fabric.network().processors),
      crowd_(static_cast<double>(fabric.ranks_of_host())),
      in_place_(is_in_place(plan.shape.op)) {
  if (processors_.caches.empty()) {
    return;
  }
  // Fine enough to tell what leaves a cache of some MiB; and of many ranks together no more than some hundred MB.
  constexpr std::size_t kSmallest = 4096;
  const std::size_t most = plan.programs.size() > 256 ? 64 : 512;
  const auto footprints = plan::footprints(plan, bytes_of_block, fabric);
  for (std::size_t i = 0; i < plan.programs.size(); ++i) {
    auto& owner = owners_.emplace_back();
    owner.footprint = footprints[i];
    const auto rank = to_rank(i);
    const std::size_t inputs = in_place_ ? 0 : plan.shape.input_blocks(rank);
    const std::size_t outputs = in_place_ ? 1 : plan.shape.output_blocks(rank);
    const std::array sizes{inputs * bytes_of_block, outputs * bytes_of_block,
                           plan.programs[i].scratch_pieces * bytes_.each};
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      auto& memory = owner.buffers[k];
      memory.bytes = sizes[k];
      memory.cell_bytes = std::max(kSmallest, (sizes[k] + most - 1) / most);
      memory.cells.resize((sizes[k] + memory.cell_bytes - 1) / memory.cell_bytes);
    }
    // What is written at all was written by the run before.
    std::array<bool, 3> written{};
    for (const auto& step : plan.programs[i].steps) {
      auto& here = written[static_cast<std::size_t>(step.span.buffer)];
      here = here || step.kind != Step::Kind::send;
    }
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      for (auto& cell : owner.buffers[k].cells) {
        cell.written = written[k];
      }
    }
  }
}

std::size_t Touched::offset(Span span) const {
  if (span.buffer == Buffer::scratch) {
    return span.begin * bytes_.each;
  }
  return span.begin / bytes_.pieces * bytes_.block + bytes_.begin(span.begin % bytes_.pieces);
}

/// Gives which share of them has left the last cache; what was written there went to memory.
double Touched::add(Cost& cost, double bytes, double distance, bool written) const {
  for (const auto& cache : processors_.caches) {
    cost.seconds += bytes * cache.missed(distance, crowd_) * cache.seconds_per_byte;
  }
  const auto& last = processors_.caches.back();
  const auto gone = last.missed(distance, crowd_);
  cost.missed += bytes * gone;
  if (written) {
    cost.seconds += bytes * gone * last.seconds_per_byte;
    cost.missed += bytes * gone;
  }
  return gone;
}

Touched::Cost Touched::touch(std::size_t rank, Span span, std::size_t skipped, std::size_t bytes, std::uint32_t step,
                             Access access) {
  Cost cost;
  if (owners_.empty()) {
    return cost;
  }
  auto& owner = owners_[rank];
  if (in_place_ && span.buffer == Buffer::input) {
    span.buffer = Buffer::output;
  }
  auto& memory = owner.buffers[static_cast<std::size_t>(span.buffer)];
  auto at = offset(span) + skipped;
  const auto end = std::min(at + bytes, memory.bytes);
  while (at < end) {
    auto& cell = memory.cells[at / memory.cell_bytes];
    const auto until = std::min(end, (at / memory.cell_bytes + 1) * memory.cell_bytes);
    const auto count = static_cast<double>(until - at);
    const bool again = cell.step == step;
    const auto last = again ? cell.before : cell.last;
    const auto gone = add(cost, count, last < 0 ? owner.footprint : std::min(owner.footprint, owner.clock - last),
                          cell.written && !again);
    constexpr double kMost = 0.5;
    cell.written = access == Access::write || (cell.written && (again || gone < kMost));
    owner.clock += count;
    if (!again) {
      cell.before = cell.last;
      cell.step = step;
    }
    cell.last = owner.clock;
    at = until;
  }
  return cost;
}

}  // namespace tutti::plan
