#pragma once

#include <memory>
#include <vector>

#include "tutti/engine/hub.h"
#include "tutti/engine/links.h"
#include "tutti/plan/piece_bytes.h"
#include "tutti/plan/plan.h"

namespace tutti::engine {

/// One rank's program, ready to be run again and again. One thread at a time.
class PlanRunner {
 public:
  /// Memory for what is on its way: grows to what the longest of those who share it needs. They take turns.
  using Scratch = std::shared_ptr<std::vector<std::byte>>;
  static Scratch new_scratch() { return std::make_shared<std::vector<std::byte>>(); }

  PlanRunner(plan::Shape shape, plan::Program program, Scratch scratch = new_scratch());

  /// Runs it for a call that all ranks agree on. Where its blocks differ in length, none may be divided, and no step
  /// may move several of them: as in direct plans. Blocks.
  Status run(const Call& call, Links& links, const Doing& doing, Deadline deadline) {
    begin(call, links, doing);
    return finish(deadline);
  }

  /// The two halves of it: what can begin without waiting, and the rest. In between, what was given must stay, and
  /// nothing else may go over these links.
  void begin(const Call& call, Links& links, const Doing& doing);
  Status finish(Deadline deadline);

 private:
  /// Messages of one direction between this rank and a peer: begun in the order of the program.
  struct Channel {
    std::vector<std::uint32_t> steps;
    std::size_t next = 0;
  };
  /// The call that is being run.
  struct Running {
    const Call* call = nullptr;
    Links* links = nullptr;
    const Doing* doing = nullptr;
    plan::PieceBytes bytes{0, 1};
    kernels::Reduction reduction;
    bool averages = false;
    bool even = true;  // all blocks are equally long
    std::byte* scratch = nullptr;
    std::byte* scaled = nullptr;  // inputs, one behind the other, when they were multiplied first
  };

  Channel& channel_of(const plan::Step& step);
  void prepare();
  void start_open();
  void start(std::uint32_t number);
  void begin_messages(Channel& channel);
  void combine(const plan::Step& step);
  void scale_inputs();
  void divide_outputs() const;
  void end_step(std::uint32_t number);
  std::byte* address(plan::Span span) const;
  std::size_t length(const plan::Step& step) const;

  const plan::Shape shape_;
  const plan::Program program_;
  // Who waits for a step: those in waiting_[first_waiting_[step] .. first_waiting_[step + 1]).
  std::vector<std::uint32_t> first_waiting_;
  std::vector<std::uint32_t> waiting_;
  std::vector<std::uint32_t> waits_at_first_;
  std::vector<Channel> sends_;  // by peer
  std::vector<Channel> receives_;
  // Of one run; kept, so that the next needs no memory.
  Running running_;
  std::vector<std::uint32_t> waits_;
  std::vector<bool> ready_;
  std::vector<std::uint32_t> open_;  // may begin
  std::vector<std::uint32_t> over_;
  std::size_t unfinished_ = 0;
  Scratch scratch_;
  std::vector<std::byte> scaled_;
  std::vector<std::size_t> scaled_at_;  // where in it each input begins
  std::vector<const std::byte*> sources_;
};

}  // namespace tutti::engine
