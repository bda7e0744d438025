#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "tutti/base/log.h"
#include "tutti/gradient/arrivals.h"
#include "tutti/gradient/backward_end.h"
#include "tutti/gradient/bucket.h"
#include "tutti/gradient/buffer_sync.h"
#include "tutti/gradient/exact_bucket.h"
#include "tutti/gradient/foresight.h"
#include "tutti/gradient/learner.h"
#include "tutti/gradient/lending.h"
#include "tutti/gradient/model_parts.h"
#include "tutti/gradient/options.h"
#include "tutti/gradient/step_report.h"

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
/// buckets are added up by an operation that does not care for the order; where some have more, as accumulators.
///
/// Buckets lend their memory to backward, so that large gradients are computed where they will lie and need no copy. A
/// guess which tensor is a gradient may be wrong, and somebody may hold on to one: then the bucket gets other memory.
class Synchronizer final : public ArrivalListener,
                           public BackwardListener,
                           public Lender,
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

  /// Of the last pass that synchronized; nothing before.
  std::optional<StepReport> report() const;

  void arrived(std::size_t index, const at::Tensor& incoming) override;
  void backward_ended() override;
  void backward_failed() noexcept override;
  c10::DataPtr place(std::size_t bytes, c10::Allocator& usual) override;

 private:
  enum class Pass { none, paused, synchronizing, broken };
  /// What ranks tell each other of a parameter.
  static constexpr std::int32_t kUsed = 1;
  static constexpr std::int32_t kLate = 2;
  using Uses = std::vector<std::uint8_t>;

  struct Parameter {
    std::size_t bucket = 0;
    std::size_t slot = 0;
    int arrivals = 0;      // in this pass
    int expected = 1;      // so many, if this pass is as the last one
    bool touched = false;  // since the last synchronization
    at::Tensor kept;       // the gradient that it had before, where this pass gave it none
    at::Tensor late;       // came after its bucket had left
    // Reproducible: gradients of this pass that are in no sum of accumulators yet, and how many there are since the
    // last synchronization.
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
  void begin_synchronizing();
  void end_pass();
  bool agree_on_divisor();
  void take_in(std::size_t index, const at::Tensor& incoming = {});
  bool reclaim(std::size_t index, const at::Tensor& incoming);
  void launch_full();
  void launch(std::size_t index);
  void finish(std::size_t bucket, const Uses& uses);
  void fill(Bucket& bucket);
  Uses agree_on_use();
  void reduce_aside(const Uses& uses);
  void add_late(const Uses& uses);
  bool is_exact() const { return options_.reduction == Reduction::reproducible; }
  ExactBucket& sums_of(std::size_t bucket);
  void keep_addend(std::size_t index);
  void set_gradients(const Uses& uses);
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
  std::size_t regular_ = 0;  // so many of them leave in every pass; the others only when somebody needs them
  std::size_t next_ = 0;     // to leave
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
