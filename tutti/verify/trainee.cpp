#include "tutti/verify/trainee.h"

#include <optional>

#include "tutti/verify/division.h"
#include "tutti/verify/verify.h"

namespace tutti::verifying {

Trainee data_parallel_trainee(std::shared_ptr<torch::nn::Module> module, std::function<at::Tensor(const Rows&)> loss,
                              const Mesh& mesh, const VerifyOptions& options) {
  const auto group = mesh.slice(averaged_axes(mesh, options)).group();
  const auto model = std::make_shared<DataParallel<torch::nn::Module>>(module, group, options.data_parallel);
  Trainee trainee{.module = std::move(module), .loss = std::move(loss), .keep = model};
  const auto mean = options.data_parallel.mean;
  if (options.microbatches == 1 && mean != Mean::per_sample) {
    return trainee;
  }
  trainee.backward = [model, mean, loss = trainee.loss, count = options.microbatches](const Rows& rows) {
    const auto all = rows[0].size(0);
    const auto sizes = divide_evenly(all, count);
    at::Tensor sum;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      std::optional<DataParallelBase::Pause> pause;
      if (i + 1 < sizes.size()) {
        pause.emplace(model->no_sync());
      }
      const auto own = loss(part_of(rows, sizes, i));
      const double share = static_cast<double>(sizes[i]) / static_cast<double>(all);
      switch (mean) {
        case Mean::per_rank: (own * share).backward(); break;
        case Mean::per_pass: own.backward(); break;
        case Mean::per_sample: model->weigh(own, static_cast<double>(sizes[i])).backward(); break;
      }
      const auto part = own.detach() * share;
      sum = sum.defined() ? sum + part : part;
    }
    return sum;
  };
  return trainee;
}

}  // namespace tutti::verifying
