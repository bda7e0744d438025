#include "tutti/plan/simulate.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tutti/plan/activities.h"
#include "tutti/plan/costs.h"
#include "tutti/plan/events.h"
#include "tutti/plan/piece_bytes.h"
#include "tutti/plan/waiting.h"

namespace tutti::plan {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

/// What a step does that takes time. One after the other, and combines and receives have the first alone.
enum class Phase : std::uint32_t { work, transfer, flight };
constexpr std::uint32_t kPhases = 3;

std::uint32_t activity(std::uint32_t event, Phase phase) { return event * kPhases + static_cast<std::uint32_t>(phase); }

class Simulation {
 public:
  Simulation(const Plan& plan, std::size_t bytes, const Fabric& fabric)
      : plan_(plan),
        bytes_(bytes, plan.shape.pieces),
        fabric_(fabric),
        events_(plan),
        waiting_(plan, events_),
        steps_(events_.size()),
        queues_(plan.programs.size(), events_.size()),
        activities_(resources_of(fabric)),
        causes_(events_.size() * kPhases, kNone),
        begun_(events_.size() * kPhases, 0) {
    result_.ends.resize(plan.programs.size(), 0);
    result_.links.resize(fabric.links());
  }

  Result<Simulated> run() {
    lay_out();
    for (std::uint32_t event = 0; event < events_.size(); ++event) {
      if (steps_[event].waits == 0) {
        open_.push_back(event);
      }
    }
    start_open();
    std::vector<std::uint32_t> over;
    while (activities_.advance(over)) {
      for (const auto id : over) {
        trigger_ = id;
        finish_phase(id / kPhases, static_cast<Phase>(id % kPhases));
        start_open();
      }
    }
    if (unfinished_ > 0) {
      return Error{Code::invalid_argument, fmt::format("the plan never ends: {} steps wait for ever", unfinished_)};
    }
    result_.seconds = activities_.now();
    trace_back();
    for (std::uint32_t link = 0; link < fabric_.links(); ++link) {
      result_.links[link].busy = activities_.busy(link);
    }
    return std::move(result_);
  }

 private:
  struct State {
    const Step* step = nullptr;
    std::size_t bytes = 0;
    std::uint32_t rank = 0;
    std::uint32_t waits = 0;        // for so many steps
    std::uint32_t earlier = kNone;  // message between the same two
    std::uint32_t later = kNone;
    std::uint32_t other = kNone;  // end of the message
    bool ready = false;           // nothing to wait for any more
    bool begun = false;           // ready, and so are earlier messages
    bool asked = false;           // its sender's processor was
    bool sent = false;            // its transfer may begin
    bool gone = false;            // its transfer is over
    bool there = false;           // has arrived
  };
  /// The links; then, where they are limits, the memory and the cores of each host.
  std::vector<Resource> resources_of(const Fabric& fabric) {
    std::vector<Resource> resources;
    for (std::uint32_t link = 0; link < fabric.links(); ++link) {
      resources.push_back({.capacity = fabric.bandwidth(link)});
    }
    const auto& processors = fabric.network().processors;
    if (processors.memory > 0) {
      first_memory_ = static_cast<std::uint32_t>(resources.size());
      resources.resize(resources.size() + fabric.hosts(), {.capacity = processors.memory});
    }
    if (processors.cores > 0 && processors.cores < std::min<std::int64_t>(fabric.ranks(), fabric.ranks_of_group(0))) {
      first_cores_ = static_cast<std::uint32_t>(resources.size());
      resources.resize(resources.size() + fabric.hosts(),
                       {.capacity = static_cast<double>(processors.cores), .by_heads = true});
    }
    return resources;
  }

  void lay_out() {
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
        ++event;
      }
    }
    unfinished_ = events_.size();
  }

  bool is_send(std::uint32_t event) const { return steps_[event].step->kind == Step::Kind::send; }

  /// What a message's level says.
  const Level& level_of(std::uint32_t event) const {
    const auto& state = steps_[event];
    const auto path = fabric_.path(to_rank(state.rank), state.step->peer);
    return fabric_.network().levels[path.level];
  }

  void start_open() {
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

  void begin_messages(std::uint32_t event) {
    while (event != kNone && steps_[event].ready &&
           (steps_[event].earlier == kNone || steps_[steps_[event].earlier].begun)) {
      auto& state = steps_[event];
      state.begun = true;
      if (state.other == kNone) {
        return;  // nobody there: it waits for ever
      }
      if (state.bytes == 0) {
        state.gone = true;  // both ends know
        finish_step(event);
      } else {
        begun_now_.push_back(event);
      }
      event = state.later;
    }
  }

  void start_message(std::uint32_t event) {
    const auto& state = steps_[event];
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

  void enqueue(std::uint32_t event) {
    if (queues_.ask(steps_[event].rank, event, steps_[event].step->kind == Step::Kind::combine)) {
      start_work(event);
    }
  }

  Work work_of(std::uint32_t event) const {
    const auto& state = steps_[event];
    const auto bytes = static_cast<double>(state.bytes);
    switch (state.step->kind) {
      case Step::Kind::send: return message_work(level_of(event).send, bytes);
      case Step::Kind::receive: return message_work(level_of(event).receive, bytes);
      case Step::Kind::combine: break;
    }
    return combine_work(fabric_.network().processors, state.step->sources.count, bytes);
  }

  void start_work(std::uint32_t event) {
    const auto host = static_cast<std::uint32_t>(fabric_.host_of(to_rank(steps_[event].rank)));
    const auto work = work_of(event);
    std::array<std::uint32_t, 2> uses{};
    std::size_t count = 0;
    if (first_memory_ != kNone && work.copied > 0) {
      uses[count++] = first_memory_ + host;
    }
    if (first_cores_ != kNone) {
      uses[count++] = first_cores_ + host;
    }
    start(event, Phase::work, work.seconds, work.seconds > 0 ? work.copied / work.seconds : 0,
          std::span(uses).first(count));
  }

  void start(std::uint32_t event, Phase phase, double seconds, double demand, std::span<const std::uint32_t> uses) {
    const auto id = activity(event, phase);
    causes_[id] = trigger_;
    begun_[id] = activities_.now();
    activities_.start(id, seconds, demand, uses);
  }

  /// Bytes go onto the links when those of the message before are through.
  void start_transfer(std::uint32_t event) {
    auto& state = steps_[event];
    if (!state.sent || (state.earlier != kNone && !steps_[state.earlier].gone)) {
      return;
    }
    const auto path = fabric_.path(to_rank(state.rank), state.step->peer);
    const auto speed = fabric_.alone(path);
    const auto bytes = static_cast<double>(state.bytes);
    for (const auto link : path.crossed()) {
      result_.links[link].bytes += bytes;
    }
    start(event, Phase::transfer, speed > 0 ? bytes / speed : 0, speed, path.crossed());
  }

  void finish_phase(std::uint32_t event, Phase phase) {
    auto& state = steps_[event];
    switch (phase) {
      case Phase::work:
        if (!is_send(event)) {
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
        state.gone = true;
        if (state.bytes > level_of(event).eager_bytes) {
          finish_step(event);
        }
        start(event, Phase::flight, level_of(event).latency, 0, {});
        if (state.later != kNone) {
          start_transfer(state.later);
        }
        return;
      case Phase::flight:
        steps_[state.other].there = true;
        if (steps_[state.other].begun) {
          enqueue(state.other);
        }
        return;
    }
  }

  void finish_step(std::uint32_t event) {
    --unfinished_;
    result_.ends[steps_[event].rank] = activities_.now();
    for (const auto next : waiting_.on(event)) {
      if (--steps_[next].waits == 0) {
        open_.push_back(next);
      }
    }
  }

  /// From the last thing that ended to what it waited for, and so on to the beginning.
  void trace_back() {
    auto end = activities_.now();
    for (auto id = trigger_; id != kNone; id = causes_[id]) {
      const auto event = id / kPhases;
      const auto took = end - begun_[id];
      switch (static_cast<Phase>(id % kPhases)) {
        case Phase::work:
          (steps_[event].step->kind == Step::Kind::combine ? result_.spent.reduction : result_.spent.messages) += took;
          break;
        case Phase::transfer: {
          const auto speed = fabric_.alone(fabric_.path(to_rank(steps_[event].rank), steps_[event].step->peer));
          const auto alone = speed > 0 ? std::min(took, static_cast<double>(steps_[event].bytes) / speed) : 0;
          result_.spent.transfer += alone;
          result_.spent.sharing += took - alone;
          break;
        }
        case Phase::flight: result_.spent.latency += took; break;
      }
      end = begun_[id];
    }
  }

  const Plan& plan_;
  PieceBytes bytes_;
  const Fabric& fabric_;
  Events events_;
  Waiting waiting_;
  std::vector<State> steps_;
  WorkQueues queues_;
  std::uint32_t first_memory_ = kNone;
  std::uint32_t first_cores_ = kNone;
  Activities activities_;
  std::vector<std::uint32_t> causes_;  // of an activity: the one whose end began it
  std::vector<double> begun_;          // when an activity did
  std::uint32_t trigger_ = kNone;      // what is over now
  std::vector<std::uint32_t> open_;
  std::vector<std::uint32_t> begun_now_;  // messages, one end of each
  std::uint32_t unfinished_ = 0;
  Simulated result_;
};

}  // namespace

Result<Simulated> simulate(const Plan& plan, std::size_t bytes_of_block, const Network& network) {
  if (auto good = check(network, plan.shape.ranks); !good) {
    return good.error();
  }
  const Fabric fabric(at_size(network, static_cast<double>(bytes_of_block)), plan.shape.ranks);
  return Simulation(plan, bytes_of_block, fabric).run();
}

}  // namespace tutti::plan
