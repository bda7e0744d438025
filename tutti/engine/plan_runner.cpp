#include "tutti/engine/plan_runner.h"

#include <algorithm>
#include <cstring>

#include "tutti/memory/line.h"
#include "tutti/plan/piece_bytes.h"

namespace tutti::engine {

using plan::Buffer;
using plan::Step;

namespace {

/// The first line in it.
std::byte* aligned(std::vector<std::byte>& memory, std::size_t bytes) {
  memory.resize(std::max(memory.size(), bytes + memory::kLine));
  const auto over = reinterpret_cast<std::uintptr_t>(memory.data()) % memory::kLine;
  return memory.data() + (memory::kLine - over) % memory::kLine;
}

}  // namespace

PlanRunner::PlanRunner(plan::Shape shape, plan::Program program, Scratch scratch)
    : shape_(shape), program_(std::move(program)), scratch_(std::move(scratch)) {
  const auto count = program_.steps.size();
  sends_.resize(static_cast<std::size_t>(shape_.ranks));
  receives_.resize(static_cast<std::size_t>(shape_.ranks));
  first_waiting_.assign(count + 1, 0);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& step = program_.steps[i];
    waits_at_first_.push_back(step.after.count);
    for (const auto before : program_.after_of(step)) {
      ++first_waiting_[before + 1];
    }
    if (step.kind != Step::Kind::combine) {
      channel_of(step).steps.push_back(i);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    first_waiting_[i + 1] += first_waiting_[i];
  }
  waiting_.resize(first_waiting_[count]);
  auto next = first_waiting_;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (const auto before : program_.after_of(program_.steps[i])) {
      waiting_[next[before]++] = i;
    }
  }
}

PlanRunner::Channel& PlanRunner::channel_of(const Step& step) {
  return (step.kind == Step::Kind::send ? sends_ : receives_)[to_index(step.peer)];
}

std::byte* PlanRunner::address(plan::Span span) const {
  const auto& running = running_;
  if (span.buffer == Buffer::scratch) {
    return running.scratch + span.begin * running.bytes.each;
  }
  const auto& call = *running.call;
  const auto block = span.begin / shape_.pieces;
  const auto offset = running.bytes.begin(span.begin % shape_.pieces);
  // Who has a block to broadcast has it already: there is no other place for it.
  if (span.buffer == Buffer::output && !call.out.empty()) {
    return call.out[block].data() + offset;
  }
  if (running.scaled != nullptr) {
    return running.scaled + scaled_at_[block] + offset;
  }
  return const_cast<std::byte*>(call.in[block].data()) + offset;  // plans never write an input
}

namespace {

bool is_even(const Call& call, std::size_t bytes) {
  const auto fits = [bytes](const auto& block) { return block.size() == bytes; };
  return std::all_of(call.in.begin(), call.in.end(), fits) && std::all_of(call.out.begin(), call.out.end(), fits);
}

}  // namespace

std::size_t PlanRunner::length(const Step& step) const {
  const auto& running = running_;
  if (running.even) {
    return running.bytes.length(step.like, step.span.count);
  }
  require(shape_.pieces == 1 && step.span.count == 1, "blocks of different lengths move one by one, undivided");
  const auto& call = *running.call;
  switch (step.span.buffer) {
    case Buffer::input: return call.in[step.span.begin].size();
    case Buffer::output: return call.out[step.span.begin].size();
    case Buffer::scratch: return running.bytes.block;  // of a sum, which has one output
  }
  return 0;
}

void PlanRunner::begin(const Call& call, Links& links, const Doing& doing) {
  const bool reduces = plan::reduces(shape_.op);
  running_ = {.call = &call,
              .links = &links,
              .doing = &doing,
              .bytes = plan::PieceBytes(doing.card.bytes, shape_.pieces),
              .reduction = {.op = call.reduce, .dtype = call.dtype},
              .averages = reduces && call.reduce == kernels::ReduceOp::avg,
              .even = is_even(call, doing.card.bytes)};
  running_.scratch = aligned(*scratch_, program_.scratch_pieces * running_.bytes.each);
  if (reduces && call.reduce == kernels::ReduceOp::premul_sum) {
    scale_inputs();
  }
  if (running_.averages) {
    running_.reduction.op = kernels::ReduceOp::sum;
  }
  prepare();
  start_open();
}

Status PlanRunner::finish(Deadline deadline) {
  while (unfinished_ != 0) {
    over_.clear();
    if (auto moved = running_.links->advance(over_, *running_.doing, deadline); !moved) {
      return moved;
    }
    for (const auto number : over_) {
      end_step(number);
    }
    start_open();
  }
  if (running_.averages) {
    divide_outputs();
  }
  return {};
}

/// Sums of sums: each rank's own contribution is multiplied before it goes anywhere.
void PlanRunner::scale_inputs() {
  auto& running = running_;
  const auto& call = *running.call;
  std::size_t total = 0;
  scaled_at_.clear();
  for (const auto& block : call.in) {
    scaled_at_.push_back(total);
    total += block.size();
  }
  running.scaled = aligned(scaled_, total);
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    const auto* from = call.in[i].data();
    auto* const to = running.scaled + scaled_at_[i];
    kernels::reduce({.op = kernels::ReduceOp::premul_sum, .dtype = call.dtype, .factors = {&call.factor, 1}},
                    {&from, 1}, {&to, 1}, kernels::count_of(call.dtype, call.in[i].size()));
  }
  running.reduction.op = kernels::ReduceOp::sum;
}

void PlanRunner::divide_outputs() const {
  const auto& running = running_;
  for (const auto& block : running.call->out) {
    const std::byte* from = block.data();
    auto* const to = block.data();
    kernels::reduce(
        {.op = kernels::ReduceOp::avg, .dtype = running.call->dtype, .divisor = static_cast<std::size_t>(shape_.ranks)},
        {&from, 1}, {&to, 1}, kernels::count_of(running.call->dtype, block.size()));
  }
}

void PlanRunner::prepare() {
  waits_ = waits_at_first_;
  ready_.assign(program_.steps.size(), false);
  unfinished_ = program_.steps.size();
  for (auto* channels : {&sends_, &receives_}) {
    for (auto& channel : *channels) {
      channel.next = 0;
    }
  }
  open_.clear();
  for (std::uint32_t i = static_cast<std::uint32_t>(program_.steps.size()); i-- > 0;) {
    if (waits_[i] == 0) {
      open_.push_back(i);
    }
  }
}

void PlanRunner::start_open() {
  while (!open_.empty()) {
    const auto number = open_.back();
    open_.pop_back();
    start(number);
  }
}

void PlanRunner::start(std::uint32_t number) {
  const auto& step = program_.steps[number];
  if (step.kind == Step::Kind::combine) {
    combine(step);
    end_step(number);
    return;
  }
  ready_[number] = true;
  begin_messages(channel_of(step));
}

void PlanRunner::begin_messages(Channel& channel) {
  while (channel.next < channel.steps.size() && ready_[channel.steps[channel.next]]) {
    const auto number = channel.steps[channel.next++];
    const auto& step = program_.steps[number];
    const auto length = this->length(step);
    if (length == 0) {
      end_step(number);  // both ends know
    } else if (step.kind == Step::Kind::send) {
      running_.links->send(step.peer, {address(step.span), length}, number);
    } else {
      running_.links->receive(step.peer, {address(step.span), length}, number);
    }
  }
}

void PlanRunner::combine(const Step& step) {
  const auto& running = running_;
  const auto length = this->length(step);
  if (length == 0) {
    return;
  }
  auto* const to = address(step.span);
  sources_.clear();
  for (const auto& source : program_.sources_of(step)) {
    sources_.push_back(address(source));
  }
  if (sources_.size() == 1) {
    if (sources_[0] != to) {
      std::memmove(to, sources_[0], length);
    }
    return;
  }
  kernels::reduce(running.reduction, sources_, {&to, 1}, kernels::count_of(running.call->dtype, length));
}

void PlanRunner::end_step(std::uint32_t number) {
  --unfinished_;
  for (auto i = first_waiting_[number]; i < first_waiting_[number + 1]; ++i) {
    if (--waits_[waiting_[i]] == 0) {
      open_.push_back(waiting_[i]);
    }
  }
}

}  // namespace tutti::engine
