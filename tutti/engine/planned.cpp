#include "tutti/engine/planned.h"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::engine {

std::optional<plan::Op> plan_op(Op op) {
  switch (op) {
    case Op::barrier:
    case Op::round_sums: return std::nullopt;
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

/// Whether a plan adds all addends at once, so that such a sum is rounded once. The only one of a single rank is
/// copied: nothing rounds it.
bool adds_at_once(plan::Algorithm algorithm, kernels::ReduceOp op, int ranks) {
  return ranks > 1 && (algorithm == plan::Algorithm::direct || algorithm == plan::Algorithm::one_shot) &&
         op != kernels::ReduceOp::avg && op != kernels::ReduceOp::premul_sum;
}

}  // namespace

void Planned::set_hosts(std::vector<std::vector<Rank>> hosts) {
  hosts_ = std::move(hosts);
  order_.clear();
  for (const auto& host : hosts_) {
    order_.insert(order_.end(), host.begin(), host.end());
  }
  if (std::is_sorted(order_.begin(), order_.end())) {
    order_.clear();
  }
}

plan::Request Planned::request_of(Op op, const plan::Choice& choice, Rank root) const {
  auto request = plan::request_of(choice, *plan_op(op), hosts_);
  request.ranks = ranks_;
  request.root = root;
  request.order = order_;
  return request;
}

namespace {

std::uint32_t mark_of(const OpChoices& choices) {
  if (choices.ordinary.empty() && choices.symmetric.empty()) {
    return 0;
  }
  std::uint32_t hash = 2166136261;  // FNV-1a
  for (const char letter : choices.ordinary.text() + " " + choices.symmetric.text()) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619;
  }
  return hash | 1U;
}

}  // namespace

Status Planned::choose(Op op, const OpChoices& choices) {
  for (const auto* some : {&choices.ordinary, &choices.symmetric}) {
    for (const auto& entry : some->entries()) {
      if (!plan_op(op)) {
        return Error{Code::invalid_argument, fmt::format("there are no plans for {}", to_string(op))};
      }
      if (!entry.choice || entry.choice->kind != plan::Choice::Kind::plan) {
        continue;
      }
      if (auto good = plan::check(request_of(op, *entry.choice, Rank{0})); !good) {
        return good;
      }
    }
  }
  choices_[static_cast<std::size_t>(op)] = choices;
  marks_[static_cast<std::size_t>(op)] = mark_of(choices);
  any_ = std::any_of(choices_.begin(), choices_.end(),
                     [](const OpChoices& each) { return !each.ordinary.empty() || !each.symmetric.empty(); });
  std::erase_if(runners_, [op](const auto& entry) { return std::get<Op>(entry.first) == op; });
  return {};
}

Status Planned::run(const Call& call, const plan::Choice& choice, Links& links, const Doing& doing, Deadline deadline) {
  auto& runner = runner_for(doing.card, choice);
  if (!Widened::type_for(doing.card) || adds_at_once(choice.algorithm, call.reduce, ranks_)) {
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

PlanRunner& Planned::runner_for(const Card& card, const plan::Choice& choice) {
  const auto root = plan::has_root(*plan_op(card.op)) ? card.root : Rank{0};
  const std::tuple key{card.op, root, choice.mark()};
  const auto found = runners_.find(key);
  if (found != runners_.end()) {
    return found->second;
  }
  const auto request = request_of(card.op, choice, root);
  return runners_
      .emplace(std::piecewise_construct, std::forward_as_tuple(key),
               std::forward_as_tuple(plan::shape_of(request).value(), plan::build(request, rank_).value(), scratch_))
      .first->second;
}

}  // namespace tutti::engine
