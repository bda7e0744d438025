#include "tutti/plan/simulate.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tutti/plan/footprint.h"
#include "tutti/plan/simulation.h"

namespace tutti::plan {

Simulation::Simulation(const Plan& plan, std::size_t bytes_of_block, const Fabric& fabric, const Savings& saved,
                       std::vector<double> late)
    : plan_(plan),
      late_(std::move(late)),
      bytes_(bytes_of_block, plan.shape.pieces),
      fabric_(fabric),
      touched_(plan, bytes_of_block, fabric),
      events_(plan),
      waiting_(plan, events_),
      steps_(events_.size()),
      queues_(plan.programs.size(), events_.size()),
      activities_(resources_of(fabric)) {
  begun_.reserve(events_.size() + events_.size() / 2);
  result_.ends.resize(plan.programs.size(), 0);
  result_.links.resize(fabric.links());
  for (std::uint32_t link = 0; link < fabric.links(); ++link) {
    buckets_.push_back({.bytes = saved[link], .idle = -fabric.meeting()});
  }
}

Result<Simulated> Simulation::run() {
  lay_out();
  for (std::uint32_t event = 0; event < events_.size(); ++event) {
    if (steps_[event].waits != 0) {
      continue;
    }
    const auto late = late_.empty() ? 0 : late_[fabric_.host_of(to_rank(steps_[event].rank))];
    if (late > 0) {
      start({event, Phase::late, 0}, late, 0, {});
    } else {
      open_.push_back(event);
    }
  }
  start_open();
  std::vector<std::uint32_t> over;
  while (activities_.advance(over)) {
    for (const auto id : over) {
      trigger_ = id;
      finish_phase(begun_[id]);
      start_open();
    }
  }
  if (unfinished_ > 0) {
    return Error{Code::invalid_argument, fmt::format("the plan never ends: {} steps wait for ever", unfinished_)};
  }
  trace_back();
  result_.spent.meeting += fabric_.meeting();
  result_.seconds = fabric_.meeting() + activities_.now();
  for (auto& end : result_.ends) {
    end += fabric_.meeting();
  }
  for (std::uint32_t link = 0; link < fabric_.links(); ++link) {
    result_.links[link].busy = activities_.busy(link);
  }
  return std::move(result_);
}

std::vector<Resource> Simulation::resources_of(const Fabric& fabric) {
  std::vector<Resource> resources;
  for (std::uint32_t link = 0; link < fabric.links(); ++link) {
    resources.push_back({.capacity = fabric.bandwidth(link)});
  }
  const auto& processors = fabric.network().processors;
  if (processors.memory > 0) {
    first_memory_ = static_cast<std::uint32_t>(resources.size());
    const auto shared = processors.caches.empty() ? Resource::Shared::evenly : Resource::Shared::fully;
    resources.resize(resources.size() + fabric.hosts(), {.capacity = processors.memory, .shared = shared});
  }
  const bool outnumbered = processors.turns(fabric.ranks_of_host()) > 1;
  switch_ = outnumbered ? processors.switch_seconds : 0;
  if (outnumbered || !processors.crowding.empty()) {
    std::vector<double> crowding{1};
    for (std::int64_t ranks = 1; ranks <= fabric.ranks_of_host(); ++ranks) {
      crowding.push_back(crowding_at(processors, static_cast<double>(ranks)) *
                         static_cast<double>(processors.turns(ranks)));
    }
    first_crowd_ = static_cast<std::uint32_t>(resources.size());
    resources.resize(resources.size() + fabric.hosts(), {.crowding = crowding});
  }
  return resources;
}

void Simulation::lay_out() {
  std::uint32_t event = 0;
  for (std::uint32_t rank = 0; rank < plan_.programs.size(); ++rank) {
    const auto& program = plan_.programs[rank];
    for (const auto& step : program.steps) {
      auto& state = steps_[event];
      state.step = &step;
      state.rank = rank;
      state.bytes = bytes_.length(step.like, step.span.count);
      state.waits = step.after.count;
      state.other = events_.other_end(event).value_or(kNone);
      state.earlier = events_.earlier_message(event).value_or(kNone);
      if (state.earlier != kNone) {
        steps_[state.earlier].later = event;
      }
      if (state.other != kNone && level_of(event).ring.bytes > 0) {
        put_in_ring(event);
      }
      ++event;
    }
  }
  unfinished_ = events_.size();
}

void Simulation::start_open() {
  for (std::size_t i = 0; i < open_.size(); ++i) {  // it grows meanwhile
    const auto event = open_[i];
    steps_[event].ready = true;
    if (steps_[event].step->kind == Step::Kind::combine) {
      enqueue(event);
    } else {
      begin_messages(event);
    }
  }
  open_.clear();
  // What begins at the same time begins in the order of programs, whichever end waits for the other: sends first.
  for (const bool sends : {true, false}) {
    for (const auto event : begun_now_) {
      if (is_send(event) == sends) {
        start_message(event);
      }
    }
  }
  begun_now_.clear();
}

void Simulation::begin_messages(std::uint32_t event) {
  while (event != kNone && steps_[event].ready &&
         (steps_[event].earlier == kNone || steps_[steps_[event].earlier].begun)) {
    auto& state = steps_[event];
    state.begun = true;
    if (state.other == kNone) {
      return;  // nobody there: it waits for ever
    }
    if (state.bytes == 0) {
      state.gone = true;  // both ends know
      if (fabric_.network().processors.step_seconds > 0) {
        enqueue(event);
      } else {
        finish_step(event);
      }
    } else {
      begun_now_.push_back(event);
    }
    event = state.later;
  }
}

void Simulation::start_message(std::uint32_t event) {
  const auto& state = steps_[event];
  if (state.ring != kNone) {
    move_on(state.ring);
    return;
  }
  const auto sender = is_send(event) ? event : state.other;
  const bool wanted = state.bytes <= level_of(event).eager_bytes || steps_[steps_[sender].other].begun;
  if (steps_[sender].begun && wanted && !steps_[sender].asked) {
    steps_[sender].asked = true;
    enqueue(sender);
  }
  if (!is_send(event) && state.there) {
    enqueue(event);
  }
}

void Simulation::enqueue(std::uint32_t event) {
  if (queues_.ask(steps_[event].rank, event, steps_[event].step->kind == Step::Kind::combine)) {
    woken_ = activities_.now() > 0;
    start_work(event);
    woken_ = false;
  }
}

Work Simulation::work_of(std::uint32_t event, std::size_t skipped, std::size_t bytes) {
  const auto& processors = fabric_.network().processors;
  const auto& state = steps_[event];
  const auto count = static_cast<double>(bytes);
  const bool combines = state.step->kind == Step::Kind::combine;
  const auto& level = combines ? fabric_.network().levels[0] : level_of(event);
  auto work = combines ? combine_work(processors, state.step->sources.count, count)
                       : message_work(processors, is_send(event) ? level.send : level.receive, count,
                                      static_cast<double>(skipped));
  if (processors.caches.empty() || work.copied == 0) {
    return work;
  }
  auto cost = touched_.touch(state.rank, state.step->span, skipped, bytes, event,
                             is_send(event) ? Touched::Access::read : Touched::Access::write);
  if (combines) {
    for (const auto& source : plan_.programs[state.rank].sources_of(*state.step)) {
      const auto more = touched_.touch(state.rank, source, skipped, bytes, event);
      cost.seconds += more.seconds;
      cost.missed += more.missed;
    }
  }
  return {work.seconds + cost.seconds, cost.missed};
}

bool Simulation::is_there_already(std::uint32_t event) const {
  const auto& state = steps_[event];
  if (state.step->kind != Step::Kind::combine || state.step->sources.count != 1 || !is_in_place(plan_.shape.op)) {
    return false;
  }
  const auto rank = to_rank(state.rank);
  const auto source = plan_.programs[state.rank].sources_of(*state.step)[0];
  return in_place(plan_.shape, rank, source) == in_place(plan_.shape, rank, state.step->span);
}

void Simulation::start_work(std::uint32_t event) {
  const auto& state = steps_[event];
  if (state.bytes == 0 || is_there_already(event)) {
    start_work({event, Phase::work, 0}, {.seconds = fabric_.network().processors.step_seconds});
  } else if (state.answer == Answer::wanted) {
    start_work({event, Phase::asking, 0}, {.seconds = level_of(event).ring.answer});
  } else if (state.ring != kNone) {
    start_portion(event, level_of(event).ring.seconds);
  } else {
    start_work({event, Phase::work, state.bytes}, work_of(event, 0, state.bytes));
  }
}

void Simulation::start_work(Begun begun, const Work& work) {
  const auto host = static_cast<std::uint32_t>(fabric_.host_of(to_rank(steps_[begun.event].rank)));
  std::array<std::uint32_t, 2> uses{};
  std::size_t count = 0;
  if (first_memory_ != kNone && work.copied > 0) {
    uses[count++] = first_memory_ + host;
  }
  if (first_crowd_ != kNone) {
    uses[count++] = first_crowd_ + host;
  }
  start(begun, work.seconds + (woken_ ? switch_ : 0), work.seconds > 0 ? work.copied / work.seconds : 0,
        std::span(uses).first(count));
}

void Simulation::start(Begun begun, double seconds, double demand, std::span<const std::uint32_t> uses) {
  begun.cause = trigger_;
  begun.at = activities_.now();
  activities_.start(static_cast<std::uint32_t>(begun_.size()), seconds, demand, uses);
  begun_.push_back(begun);
}

void Simulation::start_transfer(std::uint32_t event) {
  const auto& state = steps_[event];
  if (state.sent && (state.earlier == kNone || steps_[state.earlier].gone)) {
    cross_links(event, state.bytes);
  }
}

void Simulation::cross_links(std::uint32_t event, std::size_t bytes) {
  const auto path = path_of(event);
  const auto count = static_cast<double>(bytes);
  for (const auto link : path.crossed()) {
    result_.links[link].bytes += count;
  }
  const auto takes = [](double moved, double speed) { return speed > 0 ? moved / speed : 0; };
  const auto free = spend(path, count);
  if (free == count) {
    start({event, Phase::transfer, bytes}, takes(count, fabric_.at_once(path)), 0, {});
    return;
  }
  const auto speed = fabric_.alone(path);
  start({event, Phase::transfer, bytes}, takes(count - free, speed), speed, path.crossed());
}

void Simulation::finish_phase(Begun over) {
  const auto event = over.event;
  auto& state = steps_[event];
  switch (over.phase) {
    case Phase::late: open_.push_back(event); return;
    case Phase::work:
      if (state.bytes > 0 && state.ring != kNone) {
        if (finish_portion(event, over.bytes)) {
          return;
        }
      } else if (state.bytes == 0 || !is_send(event)) {
        finish_step(event);
      } else {
        state.sent = true;
        if (state.bytes <= level_of(event).eager_bytes) {
          finish_step(event);  // it was copied, and may be written again
        }
        start_transfer(event);
      }
      if (const auto next = queues_.next(state.rank)) {
        start_work(*next);
      }
      return;
    case Phase::transfer:
      if (state.ring != kNone) {
        rings_[state.ring].crossing = false;
        start({event, Phase::flight, over.bytes}, level_of(event).latency, 0, {});
        cross(event);
        return;
      }
      state.gone = true;
      if (state.bytes > level_of(event).eager_bytes) {
        finish_step(event);
      }
      start({event, Phase::flight, state.bytes}, level_of(event).latency, 0, {});
      if (state.later != kNone) {
        start_transfer(state.later);
      }
      return;
    case Phase::asking:
      finish_asking(event);
      if (const auto next = queues_.next(state.rank)) {
        start_work(*next);
      }
      return;
    case Phase::answer:
      state.answer = Answer::wanted;
      move_on(state.ring);
      return;
    case Phase::flight:
      if (state.ring != kNone) {
        rings_[state.ring].there += over.bytes;
        move_on(state.ring);
        return;
      }
      steps_[state.other].there = true;
      if (steps_[state.other].begun) {
        enqueue(state.other);
      }
      return;
  }
}

void Simulation::finish_step(std::uint32_t event) {
  --unfinished_;
  result_.ends[steps_[event].rank] = activities_.now();
  for (const auto next : waiting_.on(event)) {
    if (--steps_[next].waits == 0) {
      open_.push_back(next);
    }
  }
}

void Simulation::trace_back() {
  auto end = activities_.now();
  for (auto id = trigger_; id != kNone; id = begun_[id].cause) {
    const auto event = begun_[id].event;
    const auto took = end - begun_[id].at;
    switch (begun_[id].phase) {
      case Phase::late: result_.spent.meeting += took; break;
      case Phase::work:
        (steps_[event].step->kind == Step::Kind::combine ? result_.spent.reduction : result_.spent.messages) += took;
        break;
      case Phase::transfer: {
        const auto speed = fabric_.alone(path_of(event));
        const auto alone = speed > 0 ? std::min(took, static_cast<double>(begun_[id].bytes) / speed) : 0;
        result_.spent.transfer += alone;
        result_.spent.sharing += took - alone;
        break;
      }
      case Phase::asking: result_.spent.messages += took; break;
      case Phase::flight:
      case Phase::answer: result_.spent.latency += took; break;
    }
    end = begun_[id].at;
  }
}

Result<Simulated> simulate(const Plan& plan, std::size_t bytes_of_block, const Network& network) {
  if (auto good = check(network, plan.shape.ranks); !good) {
    return good.error();
  }
  return simulate_again(plan, bytes_of_block, Fabric(network, plan.shape.ranks));
}

}  // namespace tutti::plan
