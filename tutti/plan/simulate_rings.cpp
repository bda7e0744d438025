// Messages that go through rings: in portions, as there is room and processors have their turn.
#include <algorithm>

#include "tutti/plan/simulation.h"

namespace tutti::plan {

void Simulation::put_in_ring(std::uint32_t event) {
  auto& state = steps_[event];
  if (state.earlier != kNone) {
    state.ring = steps_[state.earlier].ring;
    return;
  }
  if (steps_[state.other].ring == kNone) {
    steps_[state.other].ring = static_cast<std::uint32_t>(rings_.size());
    rings_.emplace_back();
  }
  state.ring = steps_[state.other].ring;
  (is_send(event) ? rings_[state.ring].sender : rings_[state.ring].receiver) = event;
}

void Simulation::move_on(std::uint32_t number) {
  auto& ring = rings_[number];
  skip_empty(ring);
  for (const auto event : {ring.sender, ring.receiver}) {
    if (event != kNone && steps_[event].begun && !steps_[event].asked && can_move(event)) {
      steps_[event].asked = true;
      enqueue(event);
    }
  }
}

std::size_t Simulation::take_portion(std::uint32_t event) {
  auto& state = steps_[event];
  auto& ring = rings_[state.ring];
  const auto& cost = level_of(event).ring;
  const auto rest = std::min<std::size_t>(state.bytes - state.moved, cost.portion > 0 ? cost.portion : SIZE_MAX);
  if (is_send(event)) {
    const auto portion = std::min<std::size_t>({rest, cost.bytes - ring.taken, free_to_go(event)});
    ring.taken += portion;
    return portion;
  }
  const auto portion = std::min(rest, ring.there);
  ring.there -= portion;
  return portion;
}

bool Simulation::finish_portion(std::uint32_t event, std::size_t portion) {
  auto& state = steps_[event];
  auto& ring = rings_[state.ring];
  const bool sends = is_send(event);
  auto& turn = sends ? ring.sender : ring.receiver;
  state.asked = false;
  state.moved += portion;
  if (sends) {
    ring.written += portion;
    cross(event);
  } else {
    ring.taken -= portion;
    want_rest(event);
  }
  if (state.moved < state.bytes) {
    move_on(state.ring);
    return false;
  }
  turn = state.later;
  finish_step(event);
  skip_empty(ring);
  const bool goes_on = turn != kNone && steps_[turn].begun && can_move(turn);
  if (goes_on) {
    steps_[turn].asked = true;
    start_portion(turn, 0);
  }
  move_on(state.ring);
  return goes_on;
}

void Simulation::cross(std::uint32_t event) {
  auto& ring = rings_[steps_[event].ring];
  if (!ring.crossing && ring.written > 0) {
    ring.crossing = true;
    const auto portion = level_of(event).ring.portion;
    const auto crosses = portion > 0 ? std::min<std::size_t>(ring.written, portion) : ring.written;
    ring.written -= crosses;
    cross_links(event, crosses);
  }
}

bool Simulation::can_move(std::uint32_t event) const {
  const auto& ring = rings_[steps_[event].ring];
  if (steps_[event].answer == Answer::wanted) {
    return true;
  }
  return is_send(event) ? ring.taken < level_of(event).ring.bytes && free_to_go(event) > 0 : ring.there > 0;
}

std::size_t Simulation::unasked(std::uint32_t event) const {
  // At least the question itself.
  return static_cast<std::size_t>(std::max<std::uint64_t>(level_of(event).eager_bytes, 1));
}

std::size_t Simulation::free_to_go(std::uint32_t event) const {
  const auto& state = steps_[event];
  const auto until = state.answer == Answer::there ? state.bytes : std::min(state.bytes, unasked(event));
  return until - std::min(state.moved, until);
}

void Simulation::want_rest(std::uint32_t event) {
  auto& state = steps_[event];
  if (state.answer == Answer::none && state.bytes > unasked(event) && state.moved >= unasked(event)) {
    state.answer = Answer::wanted;
  }
}

void Simulation::finish_asking(std::uint32_t event) {
  auto& state = steps_[event];
  state.asked = false;
  if (is_send(event)) {
    state.answer = Answer::there;
  } else {
    state.answer = Answer::under_way;
    start({state.other, Phase::answer, 0}, level_of(event).latency, 0, {});
  }
  move_on(state.ring);
}

void Simulation::skip_empty(Ring& ring) const {
  for (auto* turn : {&ring.sender, &ring.receiver}) {
    while (*turn != kNone && steps_[*turn].bytes == 0) {
      *turn = steps_[*turn].later;
    }
  }
}

void Simulation::start_portion(std::uint32_t event, double turning) {
  const auto portion = take_portion(event);
  auto work = work_of(event, steps_[event].moved, portion);
  work.seconds += turning;
  start_work({event, Phase::work, portion}, work);
}

}  // namespace tutti::plan
