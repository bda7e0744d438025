#include "tutti/plan/footprint.h"

#include <algorithm>
#include <map>

#include "tutti/plan/piece_bytes.h"

namespace tutti::plan {
namespace {

double of_rank(const Shape& shape, const Program& program, Rank rank, std::size_t bytes_of_block,
               const Fabric& fabric) {
  const PieceBytes bytes(bytes_of_block, shape.pieces);
  std::map<std::pair<Step::Kind, Rank>, double> through;  // rings
  for (const auto& step : program.steps) {
    if (step.kind != Step::Kind::combine && fabric.host_of(step.peer) == fabric.host_of(rank)) {
      through[{step.kind, step.peer}] += static_cast<double>(bytes.length(step.like, step.span.count));
    }
  }
  const auto blocks = is_in_place(shape.op) ? 1 : shape.input_blocks(rank) + shape.output_blocks(rank);
  auto touched = static_cast<double>(bytes_of_block) * blocks +
                 static_cast<double>(bytes.each) * static_cast<double>(program.scratch_pieces);
  const auto room = static_cast<double>(fabric.network().levels[0].ring.bytes);
  for (const auto& [ring, moved] : through) {
    touched += std::min(moved, room);
  }
  return touched;
}

}  // namespace

std::vector<double> footprints(const Plan& plan, std::size_t bytes_of_block, const Fabric& fabric) {
  std::vector<double> all;
  for (std::size_t rank = 0; rank < plan.programs.size(); ++rank) {
    all.push_back(of_rank(plan.shape, plan.programs[rank], to_rank(rank), bytes_of_block, fabric));
  }
  return all;
}

double footprint(const Request& request, std::size_t bytes_of_block, const Fabric& fabric) {
  return of_rank(shape_of(request).value(), build(request, request.root).value(), request.root, bytes_of_block, fabric);
}

}  // namespace tutti::plan
