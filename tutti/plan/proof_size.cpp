#include "tutti/plan/proof_size.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::plan {
namespace {

// Rounded up, so that what is accepted stays below the limits on a usual machine: no predictions.
constexpr double kBytesOfPiece = 128;         // of memory that is followed: what it holds, and who used it
constexpr double kBytesOfStep = 320;          // with what it waits for
constexpr double kBytesOfCount = 4;           // of one rank's contributions to a piece
constexpr double kSecondsOfPiece = 100e-9;    // each time that it is touched
constexpr double kSecondsOfAddition = 80e-9;  // of one piece to another
constexpr double kSecondsOfCount = 1e-9;
constexpr double kSecondsOfWait = 30e-9;
constexpr double kSecondsOfEarlier = 0.02e-9;  // of each step before the one that is waited for

constexpr double kMostBytes = 0.8e9;
constexpr double kMostSeconds = 8;
// Which step waits for which is a square of them.
constexpr std::size_t kMostSteps = 1 << 15;

}  // namespace

Status ProofSize::check() const {
  if (bytes_ <= kMostBytes && seconds_ <= kMostSeconds) {
    return {};
  }
  const auto what = bytes_ > kMostBytes ? fmt::format("{:.2g} GB or more, {} at most", bytes_ / 1e9, kMostBytes / 1e9)
                                        : fmt::format("{:.2g} s or more, {} at most", seconds_, kMostSeconds);
  return Error{Code::invalid_argument,
               fmt::format("too large to be followed here ({}): fewer ranks, chunks or pieces", what)};
}

Status ProofSize::add(const Shape& shape) {
  double pieces = 0;
  const auto ranks = static_cast<double>(shape.ranks);
  // By the number of blocks of the rank that has most and of all others: ranks may be more than can be gone through.
  const auto other = Rank{to_int(shape.root) == 0 && shape.ranks > 1 ? 1 : 0};
  for (const auto& [rank, times] : {std::pair(shape.root, 1.), std::pair(other, ranks - 1)}) {
    pieces += times * (double{1} * shape.input_blocks(rank) + shape.output_blocks(rank)) * shape.pieces;
  }
  bytes_ = pieces * (kBytesOfPiece + kBytesOfCount * ranks);
  seconds_ += pieces * (kSecondsOfPiece + kSecondsOfCount * ranks);
  return check();
}

Status ProofSize::add(const Shape& shape, const Program& program) {
  const auto ranks = static_cast<double>(shape.ranks);
  const auto steps = program.steps.size();
  if (steps > kMostSteps) {
    return Error{Code::invalid_argument,
                 fmt::format("too large to be followed here (a rank of {} steps, {} at most): fewer ranks or chunks",
                             steps, kMostSteps)};
  }
  bytes_ += program.scratch_pieces * (kBytesOfPiece + kBytesOfCount * ranks) +
            static_cast<double>(steps) * kBytesOfStep + static_cast<double>(program.after.size()) * 16 +
            static_cast<double>(program.sources.size()) * sizeof(Span);
  seconds_ += program.scratch_pieces * kSecondsOfPiece;
  for (const auto& step : program.steps) {
    const double pieces = step.span.count;
    seconds_ += pieces * (1 + step.sources.count) * kSecondsOfPiece;
    if (step.sources.count > 1) {
      seconds_ += pieces * (step.sources.count - 1) * (kSecondsOfAddition + kSecondsOfCount * ranks);
    }
    for (const auto before : program.after_of(step)) {
      seconds_ += kSecondsOfWait + kSecondsOfEarlier * std::min<double>(before, kMostSteps);
    }
  }
  return check();
}

Result<Plan> build_provable(const Request& request) {
  const auto shape = shape_of(request);
  if (!shape) {
    return shape.error();
  }
  const auto named = [&](const Error& error) {
    return Error{error.code, fmt::format("{} {}, {} ranks, {} pieces of a block: {}", to_string(request.algorithm),
                                         to_string(request.op), request.ranks, shape.value().pieces, error.message)};
  };
  ProofSize size;
  if (auto good = size.add(shape.value()); !good) {
    return named(good.error());
  }
  Plan plan{.shape = shape.value(), .programs = {}};
  for (int rank = 0; rank < request.ranks; ++rank) {
    plan.programs.push_back(build(request, Rank{rank}).value());
    if (auto good = size.add(shape.value(), plan.programs.back()); !good) {
      return named(good.error());
    }
  }
  return plan;
}

}  // namespace tutti::plan
