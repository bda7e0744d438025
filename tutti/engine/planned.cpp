#include "tutti/engine/planned.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace tutti::engine {

namespace {

/// What comes behind a mark, taken off the text; nothing when the mark is not there.
Result<std::optional<unsigned>> take_number(std::string_view& text, char mark, std::string_view what, unsigned most) {
  const auto at = text.find(mark);
  if (at == std::string_view::npos) {
    return std::optional<unsigned>();
  }
  const auto digits = text.substr(at + 1);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 1 || number > most) {
    return Error{Code::invalid_argument,
                 fmt::format("'{}': after '{}' comes a number of {}, 1 to {}", text, mark, what, most)};
  }
  text = text.substr(0, at);
  return std::optional(number);
}

}  // namespace

Result<PlanChoice> PlanChoice::parse(std::string_view text) {
  if (text == "library") {
    return PlanChoice{.library = true};
  }
  const auto chunks = take_number(text, '/', "chunks", kMostChunks);
  if (!chunks) {
    return chunks.error();
  }
  const auto leaders = take_number(text, '@', "leaders", kMostLeaders);
  if (!leaders) {
    return leaders.error();
  }
  const auto algorithm = plan::parse_algorithm(text);
  if (!algorithm) {
    return algorithm.error();
  }
  return PlanChoice{
      .algorithm = algorithm.value(), .chunks = chunks.value().value_or(1), .leaders = leaders.value().value_or(1)};
}

std::string PlanChoice::text() const {
  return library                                ? "library"
         : algorithm == plan::Algorithm::hybrid ? fmt::format("hybrid@{}/{}", leaders, chunks)
                                                : fmt::format("{}/{}", to_string(algorithm), chunks);
}

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

/// Whether a plan adds all addends at once, so that such a sum is rounded once.
bool adds_at_once(plan::Algorithm algorithm, kernels::ReduceOp op) {
  return (algorithm == plan::Algorithm::direct || algorithm == plan::Algorithm::one_shot) &&
         op != kernels::ReduceOp::avg && op != kernels::ReduceOp::premul_sum &&
         op != kernels::ReduceOp::reproducible_avg;
}

}  // namespace

plan::Request Planned::request_of(Op op, const PlanChoice& choice, Rank root) const {
  plan::Request request{
      .op = *plan_op(op), .algorithm = choice.algorithm, .ranks = ranks_, .root = root, .chunks = choice.chunks};
  if (choice.algorithm == plan::Algorithm::hybrid) {
    request.hosts = hosts_;
    request.leaders = choice.leaders;
    for (const auto& host : hosts_) {
      request.leaders = std::min(request.leaders, static_cast<unsigned>(host.size()));
    }
  }
  return request;
}

Status Planned::choose(Op op, std::optional<PlanChoice> choice) {
  if (choice) {
    if (!plan_op(op)) {
      return Error{Code::invalid_argument, fmt::format("there are no plans for {}", to_string(op))};
    }
    if (auto good = choice->library ? Status() : plan::check(request_of(op, *choice, Rank{0})); !good) {
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
  return &*choice;
}

Status Planned::run(const Call& call, Links& links, const Doing& doing, Deadline deadline) {
  auto& runner = runner_for(doing.card);
  const auto algorithm = choices_[static_cast<std::size_t>(call.op)]->algorithm;
  if (!Widened::type_for(doing.card) || adds_at_once(algorithm, call.reduce)) {
    return runner.run(call, links, doing, deadline);
  }
  const auto& wide = widened_.begin(call);
  auto status =
      runner.run(wide, links, {.card = make_card(wide), .sequence = doing.sequence, .whole = &doing}, deadline);
  if (status) {
    widened_.finish(call, ranks_);
  }
  return status;
}

PlanRunner& Planned::runner_for(const Card& card) {
  const auto root = plan::has_root(*plan_op(card.op)) ? card.root : Rank{0};
  const auto found = runners_.find({card.op, root});
  if (found != runners_.end()) {
    return found->second;
  }
  const auto request = request_of(card.op, *choices_[static_cast<std::size_t>(card.op)], root);
  return runners_
      .emplace(std::piecewise_construct, std::forward_as_tuple(card.op, root),
               std::forward_as_tuple(plan::shape_of(request).value(), plan::build(request, rank_).value()))
      .first->second;
}

}  // namespace tutti::engine
