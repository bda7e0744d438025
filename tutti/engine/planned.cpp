#include "tutti/engine/planned.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace tutti::engine {

Result<PlanChoice> PlanChoice::parse(std::string_view text) {
  constexpr unsigned kMostChunks = 4096;
  const auto slash = text.find('/');
  const auto algorithm = plan::parse_algorithm(text.substr(0, slash));
  if (!algorithm) {
    return algorithm.error();
  }
  PlanChoice choice{.algorithm = algorithm.value(), .chunks = 1};
  if (slash != std::string_view::npos) {
    const auto number = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), choice.chunks);
    if (error != std::errc() || end != number.data() + number.size() || choice.chunks < 1 ||
        choice.chunks > kMostChunks) {
      return Error{Code::invalid_argument,
                   fmt::format("'{}': after the slash comes a number of chunks, 1 to {}", text, kMostChunks)};
    }
  }
  return choice;
}

std::string PlanChoice::text() const { return fmt::format("{}/{}", to_string(algorithm), chunks); }

std::optional<plan::Op> plan_op(Op op) {
  switch (op) {
    case Op::barrier: return std::nullopt;
    case Op::all_reduce: return plan::Op::all_reduce;
    case Op::reduce: return plan::Op::reduce;
    case Op::broadcast: return plan::Op::broadcast;
    case Op::all_gather: return plan::Op::all_gather;
    case Op::reduce_scatter: return plan::Op::reduce_scatter;
    case Op::all_to_all: return plan::Op::all_to_all;
    case Op::gather: return plan::Op::gather;
    case Op::scatter: return plan::Op::scatter;
  }
  return std::nullopt;
}

namespace {

plan::Request request_of(Op op, const PlanChoice& choice, int ranks, Rank root) {
  return {.op = *plan_op(op), .algorithm = choice.algorithm, .ranks = ranks, .root = root, .chunks = choice.chunks};
}

/// Whether sums of sums are not the sum: a plan that makes them would give other bits.
bool rounds_sums(kernels::DType dtype, kernels::ReduceOp op) {
  return op == kernels::ReduceOp::reproducible_sum || op == kernels::ReduceOp::reproducible_avg ||
         dtype == kernels::DType::float16 || dtype == kernels::DType::bfloat16 ||
         dtype == kernels::DType::float8_e4m3fn || dtype == kernels::DType::float8_e5m2;
}

/// Whether a plan gives such a sum the bits of one that is added at once and rounded at the end.
bool adds_at_once(plan::Algorithm algorithm, kernels::ReduceOp op) {
  return (algorithm == plan::Algorithm::direct || algorithm == plan::Algorithm::one_shot) &&
         op != kernels::ReduceOp::avg && op != kernels::ReduceOp::premul_sum &&
         op != kernels::ReduceOp::reproducible_avg;
}

}  // namespace

Status Planned::choose(Op op, std::optional<PlanChoice> choice) {
  if (choice) {
    if (!plan_op(op)) {
      return Error{Code::invalid_argument, fmt::format("there are no plans for {}", to_string(op))};
    }
    if (auto good = plan::check(request_of(op, *choice, ranks_, Rank{0})); !good) {
      return good;
    }
  }
  choices_[static_cast<std::size_t>(op)] = choice;
  any_ = std::any_of(choices_.begin(), choices_.end(), [](const auto& each) { return each.has_value(); });
  std::erase_if(runners_, [op](const auto& entry) { return entry.first.first == op; });
  return {};
}

const PlanChoice* Planned::choice_for(const Card& card) const {
  const auto& choice = choices_[static_cast<std::size_t>(card.op)];
  if (!choice || !card.plain || card.bytes == 0) {
    return nullptr;
  }
  if (plan::reduces(*plan_op(card.op)) && rounds_sums(card.dtype, card.reduce) &&
      !adds_at_once(choice->algorithm, card.reduce)) {
    return nullptr;
  }
  return &*choice;
}

PlanRunner& Planned::runner(const Card& card) {
  const auto root = plan::has_root(*plan_op(card.op)) ? card.root : Rank{0};
  const auto found = runners_.find({card.op, root});
  if (found != runners_.end()) {
    return found->second;
  }
  const auto request = request_of(card.op, *choices_[static_cast<std::size_t>(card.op)], ranks_, root);
  return runners_
      .emplace(std::piecewise_construct, std::forward_as_tuple(card.op, root),
               std::forward_as_tuple(plan::shape_of(request).value(), plan::build(request, rank_).value()))
      .first->second;
}

}  // namespace tutti::engine
