#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include <ATen/ThreadLocalState.h>

#include "tutti/base/log.h"
#include "tutti/gradient/arrivals.h"
#include "tutti/gradient/backward_end.h"
#include "tutti/gradient/bucket.h"
#include "tutti/gradient/buffer_sync.h"
#include "tutti/gradient/exact_bucket.h"
#include "tutti/gradient/foresight.h"
#include "tutti/gradient/learner.h"
#include "tutti/gradient/leaving_order.h"
#include "tutti/gradient/lending.h"
#include "tutti/gradient/model_parts.h"
#include "tutti/gradient/options.h"
#include "tutti/gradient/step_report.h"
#include "tutti/gradient/use_watch.h"

namespace tutti::gradient {

/// Averages the gradients of some parameters over a group while backward runs. Made on every rank with the same
/// parameters; from then on every backward pass that reaches one of them synchronizes, unless it is paused.
///
/// Gradients arrive in any order and go into buckets. A bucket leaves when it is full and those before it have left, so
/// that all ranks send them in one order. While it is on its way its parameters have no gradient: one that comes late
/// (a parameter used in two checkpointed segments) cannot spoil it. When backward ends, buckets that are not full leave
/// with zeros; then ranks tell each other which parameters got a gradient anywhere, wait, and set gradients to views of
/// their bucket. Buffers travel at the same time. Parameters that nobody needed for some passes are put aside, in
/// buckets that leave only when somebody needs them. One backward at a time; other than that, any thread.
///
/// With Reduction::reproducible every gradient that arrives is an addend of its own. Where each rank has one pass,
/// buckets are added up by an operation that does not care for the order; where some have more, by one that takes any
/// number of them.
///
/// Buckets lend their memory to backward, so that large gradients are computed where they will lie and need no copy. A
/// guess which tensor is a gradient may be wrong, and somebody may hold on to one: then the bucket gets other memory.
///
/// When it goes ahead (StepAhead), buckets that would wait for the cable at backward's end leave last one first, and
/// backward does not wait for them: the pass stays open until they are back. Whoever uses one of their gradients, or a
/// parameter that is to be stepped with it, waits.
class Synchronizer final : public ArrivalListener,
                           public BackwardListener,
                           public Lender,
                           public UseListener,
                           public std::enable_shared_from_this<Synchronizer> {
 public:
  Synchronizer(std::vector<NamedTensor> parameters, std::vector<NamedTensor> buffers, Group group,
               const DataParallelOptions& options);
  ~Synchronizer() override;

  /// Begins to listen. Not in the constructor, since hooks hold on to a shared pointer.
  void attach();

  void pause();
  void resume();
  /// Of what the next gradients are the mean: so many samples.
  void count(double samples);

  /// Takes part in others' passes, with nothing of its own, until all ranks do; calls that after each of these. Gives a
  /// rank that had something in the last one.
  Rank join(const std::function<void()>& after_pass);

  /// From now on backward may return before all gradients are there; or not any more.
  void go_ahead(bool on);
  using Take = std::function<void(std::span<const at::Tensor>)>;
  /// Parameters whose gradients are not back have none from now on, until `take` is called for them, and after that. It
  /// is called when gradients are back, at the latest before an operator uses one of their parameters.
  void take_later(Take take);
  /// Returns when all gradients are back.
  void settle();
  const std::vector<NamedTensor>& parameters() const { return named_; }
  void say(const std::string& what) const { warn(log_, what); }

  /// Of the last pass that synchronized and is over; nothing before.
  std::optional<StepReport> report() const;

  void arrived(std::size_t index, const at::Tensor& incoming) override;
  void backward_ended() override;
  void backward_failed() noexcept override;
  c10::DataPtr place(std::size_t bytes, c10::Allocator& usual) override;
  void about_to_be_used(const c10::StorageImpl* storage) noexcept override;

 private:
  enum class Pass { none, paused, synchronizing, open, broken };
  /// What ranks tell each other of a parameter.
  static constexpr std::int32_t kUsed = 1;
  static constexpr std::int32_t kLate = 2;
  using Uses = std::vector<std::uint8_t>;

  /// What ranks tell each other at the end of a pass, while it is on its way.
  struct Agreement {
    at::Tensor words;
    Work work;
  };

  /// A bucket that is still on its way when backward has returned.
  struct OpenBucket {
    std::size_t index = 0;
    std::vector<std::size_t> taken = {};     // slots whose gradients are for who asked
    std::vector<c10::Storage> watched = {};  // who uses one of these waits
  };

  /// What is left of a pass whose backward has returned.
  struct Open {
    std::vector<OpenBucket> buckets = {};  // in the order in which they come back
    Uses uses = {};
    Take take = nullptr;
    std::optional<at::ThreadLocalState> state = {};  // of who asked: modes of autograd, and the like
  };

  struct Parameter {
    std::size_t bucket = 0;
    std::size_t slot = 0;
    int arrivals = 0;      // in this pass
    int expected = 1;      // so many, if this pass is as the last one
    bool touched = false;  // since the last synchronization
    at::Tensor kept;       // the gradient that it had before, where this pass gave it none
    at::Tensor late;       // came after its bucket had left
    // Reproducible: gradients of this pass that are in no ExactBucket yet, and how many there are since the last
    // synchronization.
    std::vector<at::Tensor> addends = {};
    std::int64_t count = 0;
  };

  const at::Tensor& tensor(std::size_t index) const { return named_[index].tensor; }
  const at::Tensor& view(std::size_t index) const;
  void take_arrived(std::size_t index, const at::Tensor& incoming);
  bool lends() const { return options_.in_place && foresight_.has_any() && !is_exact(); }
  void add_more(std::size_t index);
  void begin_pass();
  double own_share() const;
  void begin_synchronizing(std::int32_t own);
  void end_pass();
  bool agree_on_divisor(bool paused);
  void take_in(std::size_t index, const at::Tensor& incoming = {});
  bool reclaim(std::size_t index, const at::Tensor& incoming);
  void launch_full();
  void launch(std::size_t index);
  void finish(std::size_t bucket, const Uses& uses);
  void fill(Bucket& bucket);
  /// The bucket that leaves at that place.
  std::size_t leaving(std::size_t place) const { return place < held_ ? place : regular_ - 1 - (place - held_); }
  Agreement start_agreeing() const;
  Uses agreed(Agreement& agreement);
  bool may_stay_open(const Uses& uses) const;
  void stay_open(Uses uses);
  void bring_home();
  void watch(OpenBucket& open, const at::Tensor& tensor);
  void take_home(const OpenBucket& open) const;
  void settle_locked();
  void close_pass();
  void stop_watching(const OpenBucket& open) const;
  void stop_all_watching() const;
  void abort_group() noexcept;
  bool waits_for(const c10::StorageImpl* storage) const;
  void note_journeys();
  void note_set_by_hand();
  std::size_t proposal() const;
  void reduce_aside(const Uses& uses);
  void add_late(const Uses& uses);
  bool is_exact() const { return options_.reduction == Reduction::reproducible; }
  ExactBucket& sums_of(std::size_t bucket);
  void keep_addend(std::size_t index);
  void set_gradients(const Uses& uses);
  void forget_pass(bool joined);
  void learn(const Uses& uses);
  void divide(const std::vector<std::size_t>& order);
  [[noreturn]] void report_passes();

  const Group group_;
  const DataParallelOptions options_;
  const std::vector<NamedTensor> named_;
  const Log log_;  // of what each pass did, on request
  BufferSync buffers_;
  Arrivals arrivals_;
  mutable std::mutex mutex_;
  std::vector<Parameter> parameters_;
  std::vector<BucketLayout> layouts_;
  std::vector<Bucket> buckets_;
  std::vector<std::unique_ptr<ExactBucket>> sums_;  // of the buckets, where they were needed
  bool as_sums_ = false;                            // this pass is sent as those
  std::size_t regular_ = 0;    // so many of them leave in every pass; the others only when somebody needs them
  std::size_t held_ = 0;       // from this place on buckets leave when backward is over, last one first
  std::size_t next_held_ = 0;  // in the next pass
  std::size_t next_ = 0;       // the place whose bucket is to leave
  std::size_t filled_ = 0;     // regular buckets that are full
  int ahead_ = 0;              // so many want it
  bool all_ahead_ = false;     // all ranks, in this pass
  Open open_;
  std::vector<Journey> journeys_;  // of regular buckets, in the last pass, where that is known
  bool timed_ = true;              // it is, of this pass
  std::optional<Uses> to_learn_;   // from a pass that was open
  std::exception_ptr failure_;     // while it was
  Learner learner_;
  Foresight foresight_;
  std::vector<std::size_t> order_;  // of arrival, in this pass
  bool other_order_ = false;        // a bucket was full before those that leave before it
  std::uint64_t generation_ = 0;    // of buckets
  int pauses_ = 0;
  Pass pass_ = Pass::none;
  std::int32_t passes_ = 0;  // since the last synchronization
  double samples_ = 0;       // in them
  Reduce reduce_ = ReduceOp::avg;
  double divisor_ = 1;
  std::vector<Rank> active_;  // had something in the last pass
  bool all_joined_ = false;
  StepReport current_;
  std::optional<StepReport> last_;
};

}  // namespace tutti::gradient
