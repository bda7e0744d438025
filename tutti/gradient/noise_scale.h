#pragma once

#include <memory>
#include <optional>

#include "tutti/gradient/hook.h"

namespace tutti {

/// Measures how large a batch is worth while, as a hook of DataParallel: the gradient noise scale of McCandlish et al.
/// (2018). It compares the length of a rank's gradient with that of the average, in every step, and costs two passes
/// over each bucket and one small message for it. Batches well below the noise scale lose little time by growing; ones
/// well above it lose most of what is added. At least two ranks, with as many samples each.
///
///   auto noise = std::make_shared<tutti::NoiseScale>(samples_of_a_rank);
///   tutti::DataParallel model(net, group, {.hook = noise});
///   ...
///   if (auto estimate = noise->estimate()) print(estimate->samples);
///
/// The thread that runs backward.
class NoiseScale final : public Hook {
 public:
  /// `inner` reduces buckets. Of what is known, a step forgets the part `forget`: one step says little.
  explicit NoiseScale(double samples_of_a_rank, std::shared_ptr<Hook> inner = all_reduce_hook(), double forget = 0.05);

  struct Estimate {
    double gradient = 0;  ///< squared length of the true gradient
    double noise = 0;     ///< of one sample: the sum of its variances
    double samples = 0;   ///< noise / gradient: the batch at which noise and gradient are as large
    std::uint64_t steps = 0;
  };
  /// The same on all ranks; nothing before the first whole step, and while noise drowns the gradient.
  std::optional<Estimate> estimate() const;

  Work reduce(const FullBucket& bucket, const Group& group) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  struct Step;  // whose buckets are under way
  /// Both fade, and so does the weight by which they are to be divided.
  struct Sums {
    double gradient = 0;
    double noise = 0;
    double weight = 0;
    std::uint64_t steps = 0;
  };
  Sums with(const Step& step) const;

  const double samples_;
  const std::shared_ptr<Hook> inner_;
  const double forget_;
  std::shared_ptr<Step> step_;
  Sums sums_;
};

}  // namespace tutti
