#pragma once

#include <vector>

#include "tutti/engine/hub.h"
#include "tutti/engine/links.h"
#include "tutti/plan/plan.h"

namespace tutti::engine {

/// One rank's program, ready to be run again and again. One thread at a time.
class PlanRunner {
 public:
  PlanRunner(plan::Shape shape, plan::Program program);

  /// Runs it for a call that all ranks agree on. Where its blocks differ in length, none may be divided, and no step
  /// may move several of them: as in direct plans. Blocks.
  Status run(const Call& call, Links& links, const Doing& doing, Deadline deadline);

 private:
  /// Messages of one direction between this rank and a peer: begun in the order of the program.
  struct Channel {
    std::vector<std::uint32_t> steps;
    std::size_t next = 0;
  };
  struct Running;

  Channel& channel_of(const plan::Step& step);
  void start(Running& running, std::uint32_t number);
  void begin_messages(Running& running, Channel& channel);
  void combine(Running& running, const plan::Step& step);
  Status run_steps(Running& running, const Doing& doing, Deadline deadline);
  void scale_inputs(Running& running);
  void divide_outputs(const Running& running) const;
  void finish(std::uint32_t number);
  std::byte* address(const Running& running, plan::Span span) const;
  std::size_t length(const Running& running, const plan::Step& step) const;

  const plan::Shape shape_;
  const plan::Program program_;
  // Who waits for a step: those in waiting_[first_waiting_[step] .. first_waiting_[step + 1]).
  std::vector<std::uint32_t> first_waiting_;
  std::vector<std::uint32_t> waiting_;
  std::vector<std::uint32_t> waits_at_first_;
  std::vector<Channel> sends_;  // by peer
  std::vector<Channel> receives_;
  // Of one run; kept, so that the next needs no memory.
  std::vector<std::uint32_t> waits_;
  std::vector<bool> ready_;
  std::vector<std::uint32_t> open_;  // may begin
  std::vector<std::uint32_t> over_;
  std::size_t unfinished_ = 0;
  std::vector<std::byte> scratch_;
  std::vector<std::byte> scaled_;
  std::vector<std::size_t> scaled_at_;  // where in it each input begins
  std::vector<const std::byte*> sources_;
};

}  // namespace tutti::engine
