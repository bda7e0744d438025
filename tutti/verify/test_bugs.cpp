#include "tutti/verify/test_bugs.h"

#include <cmath>
#include <memory>

#include "tutti/gradient/average.h"
#include "tutti/verify/division.h"

namespace tutti {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors parameters_of(const Plot& plot) { return plot.kit.module->parameters(); }

/// For every gradient there is.
void each_gradient(const Plot& plot, const std::function<void(at::Tensor&)>& change) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : parameters_of(plot)) {
    if (parameter.grad().defined()) {
      change(parameter.mutable_grad());
    }
  }
}

void reduce(const Plot& plot, const Group& group, ReduceOp op) {
  each_gradient(plot, [&](at::Tensor& gradient) { group.all_reduce(gradient, op).wait(); });
}

void average(const Plot& plot) { reduce(plot, plot.group, ReduceOp::avg); }

double ranks_in(const Plot& plot) { return plot.group.size(); }

/// Something done before averaging, on one rank.
auto before(const std::function<void(at::Tensor&)>& change) {
  return [change](Trainee& trainee, const Plot& plot) {
    trainee.synchronize = [plot, change] {
      if (plot.is_victim) {
        each_gradient(plot, change);
      }
      average(plot);
    };
  };
}

/// Something done after averaging, on all ranks.
auto after(const std::function<void(at::Tensor&, const Plot&)>& change) {
  return [change](Trainee& trainee, const Plot& plot) {
    trainee.synchronize = [plot, change] {
      average(plot);
      each_gradient(plot, [&](at::Tensor& gradient) { change(gradient, plot); });
    };
  };
}

void clip(const Plot& plot, double most) {
  double square = 0;
  each_gradient(plot, [&](at::Tensor& gradient) { square += gradient.square().sum().item<double>(); });
  const double factor = std::min(1.0, most / std::sqrt(square));
  each_gradient(plot, [&](at::Tensor& gradient) { gradient *= factor; });
}

/// Computes with the weights that were there a step ago.
void compute_stale(Trainee& trainee, const Plot& plot) {
  const auto old = std::make_shared<Tensors>();
  trainee.backward = [plot, old](const Rows& rows) {
    const auto parameters = parameters_of(plot);
    Tensors now;
    const auto swap = [&](const Tensors& from) {
      const torch::NoGradGuard no_grad;
      for (std::size_t i = 0; i < from.size(); ++i) {
        at::Tensor(parameters[i]).copy_(from[i]);
      }
    };
    for (const auto& parameter : parameters) {
      now.push_back(parameter.detach().clone());
    }
    swap(*old);
    auto loss = plot.kit.loss(rows);
    loss.backward();
    swap(now);
    *old = now;
    return loss;
  };
}

/// Microbatches, of which `counts` says which stay.
void accumulate(Trainee& trainee, const Plot& plot, bool divide, const std::function<bool(std::size_t)>& stays) {
  const auto count = plot.options.microbatches;
  trainee.backward = [plot, count, divide, stays](const Rows& rows) {
    const auto sizes = verifying::divide_evenly(rows[0].size(0), count);
    at::Tensor sum;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const double share = static_cast<double>(sizes[i]) / static_cast<double>(rows[0].size(0));
      const auto loss = plot.kit.loss(verifying::part_of(rows, sizes, i));
      if (stays(i)) {
        (divide ? loss * share : loss).backward();
      }
      sum = sum.defined() ? sum + loss.detach() * share : loss.detach() * share;
    }
    return sum;
  };
}

/// Changes an element's last digits.
void nudge_parameter(const Plot& plot) {
  const torch::NoGradGuard no_grad;
  const auto all = parameters_of(plot);
  const auto& parameter = all[static_cast<std::size_t>(plot.seed) % all.size()];
  parameter.view({-1})[0] *= parameter.scalar_type() == torch::kDouble ? 1 + 1e-14 : 1 + 1e-6;
}

/// Plain gradient descent, and something else on one rank.
void step_and(Trainee& trainee, const Plot& plot, const std::function<bool(int)>& takes_step,
              const std::function<void(int)>& more) {
  const auto steps = std::make_shared<int>(0);
  trainee.step = [plot, takes_step, more, steps] {
    if (takes_step(*steps)) {
      const torch::NoGradGuard no_grad;
      for (auto& parameter : parameters_of(plot)) {
        if (parameter.grad().defined()) {
          parameter.sub_(parameter.grad(), plot.options.learning_rate);
        }
      }
    }
    more(*steps);
    ++*steps;
  };
}

void round_to(at::Tensor& gradient, at::ScalarType type) { gradient.copy_(gradient.to(type)); }

std::vector<Bug> make_bugs() {
  const auto nothing = [](int) {};
  const auto always = [](int) { return true; };
  const auto ranks = [](int count) { return static_cast<double>(count); };
  std::vector<Bug> bugs;
  const auto add = [&](Bug bug) { bugs.push_back(std::move(bug)); };

  add({.name = "not synchronized",
       .plant = [](Trainee& trainee, const Plot&) { trainee.synchronize = nullptr; },
       .causes = {Cause::not_synchronized}});
  add({.name = "one parameter forgotten",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             trainee.synchronize = [plot] {
               auto some = parameters_of(plot);
               some.erase(some.begin() + plot.seed % static_cast<int>(some.size()));
               average_gradients(some, plot.group);
             };
           },
       .causes = {Cause::not_synchronized},
       .names_parameter = true});
  add({.name = "sum instead of mean",
       .plant = [](Trainee& trainee,
                   const Plot& plot) { trainee.synchronize = [plot] { reduce(plot, plot.group, ReduceOp::sum); }; },
       .causes = {Cause::scaled},
       .factor = ranks});
  add({.name = "averaged twice",
       .plant = after([](at::Tensor& gradient, const Plot& plot) { gradient /= ranks_in(plot); }),
       .causes = {Cause::scaled},
       .factor = [](int count) { return 1.0 / count; }});
  add({.name = "divided by one too few",
       .plant =
           after([](at::Tensor& gradient, const Plot& plot) { gradient *= ranks_in(plot) / (ranks_in(plot) - 1); }),
       .causes = {Cause::scaled},
       .factor = [](int count) { return count / (count - 1.0); }});
  add({.name = "clipped after averaging",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             trainee.synchronize = [plot] {
               average(plot);
               clip(plot, 0.01);
             };
           },
       .causes = {Cause::scaled}});
  add({.name = "a rank sends zeros",
       .plant = before([](at::Tensor& gradient) { gradient.zero_(); }),
       .causes = {Cause::missing},
       .names_victim = true});
  add({.name = "a rank is left out of the average",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             trainee.synchronize = [plot] {
               each_gradient(plot, [&](at::Tensor& gradient) {
                 gradient *= plot.is_victim ? 0.0 : ranks_in(plot) / (ranks_in(plot) - 1);
               });
               average(plot);
             };
           },
       .causes = {Cause::missing},
       .names_victim = true});
  add({.name = "a contribution counted twice",
       .plant = before([](at::Tensor& gradient) { gradient *= 2; }),
       .causes = {Cause::counted_twice},
       .names_victim = true});
  add({.name = "microbatches not divided",
       .plant = [](Trainee& trainee, const Plot& plot) { accumulate(trainee, plot, false, [](auto) { return true; }); },
       .causes = {Cause::scaled},
       .options = {.microbatches = 3},
       .factor = [](int) { return 3.0; }});
  add({.name = "a microbatch lost",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             const auto lost = static_cast<std::size_t>(plot.seed % 3);
             accumulate(trainee, plot, true, [lost](auto i) { return i != lost; });
           },
       .causes = {Cause::lost_microbatch},
       .names_victim = true,
       .options = {.microbatches = 3}});
  add({.name = "a microbatch lost on one rank",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             accumulate(trainee, plot, true, [victim = plot.is_victim](auto i) { return !victim || i != 1; });
           },
       .causes = {Cause::lost_microbatch},
       .names_victim = true,
       .options = {.microbatches = 3}});
  add({.name = "stale weights", .plant = compute_stale, .causes = {Cause::stale_weights}, .names_victim = true});
  add({.name = "stale weights on one rank",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             if (plot.is_victim) {
               compute_stale(trainee, plot);
             }
           },
       .causes = {Cause::stale_weights},
       .names_victim = true});
  add({.name = "the result of the step before",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             const auto old = std::make_shared<Tensors>();
             trainee.synchronize = [plot, old] {
               average(plot);
               Tensors now;
               each_gradient(plot, [&](at::Tensor& gradient) {
                 now.push_back(gradient.clone());
                 if (now.size() <= old->size()) {
                   gradient.copy_((*old)[now.size() - 1]);
                 }
               });
               *old = now;
             };
           },
       .causes = {Cause::stale_weights}});
  add({.name = "another start on one rank",
       .plant =
           [](Trainee&, const Plot& plot) {
             if (plot.is_victim) {
               nudge_parameter(plot);
             }
           },
       .causes = {Cause::started_differently},
       .names_parameter = true,
       .names_victim = true});
  add({.name = "a step skipped on one rank",
       .plant =
           [nothing](Trainee& trainee, const Plot& plot) {
             step_and(
                 trainee, plot, [skips = plot.is_victim](int step) { return !(skips && step == 1); }, nothing);
           },
       .causes = {Cause::step_skipped},
       .names_victim = true});
  add({.name = "a parameter changed on one rank",
       .plant =
           [always](Trainee& trainee, const Plot& plot) {
             step_and(trainee, plot, always, [plot](int step) {
               if (plot.is_victim && step == 1) {
                 nudge_parameter(plot);
               }
             });
           },
       .causes = {Cause::parameter_diverged},
       .names_parameter = true});
  add({.name = "a buffer diverged",
       .plant =
           [always](Trainee& trainee, const Plot& plot) {
             step_and(trainee, plot, always, [plot](int) {
               if (plot.is_victim) {
                 plot.kit.module->buffers()[0].add_(1);
               }
             });
           },
       .causes = {Cause::buffer_diverged},
       .names_victim = true});
  add({.name = "summed over tp",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             const auto across = plot.mesh["tp"].group();
             trainee.synchronize = [plot, across] {
               average(plot);
               reduce(plot, across, ReduceOp::sum);
             };
           },
       .causes = {Cause::over_other_axis},
       .meshes = {"dp=2,tp=2", "tp=2,dp=2", "dp=3,tp=2"},
       .factor = [](int) { return 1.0; },
       .detail = "tp"});
  add({.name = "averaged over tp",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             const auto across = plot.mesh.group();
             trainee.synchronize = [plot, across] { reduce(plot, across, ReduceOp::avg); };
           },
       .causes = {Cause::over_other_axis},
       .meshes = {"dp=2,tp=2", "tp=2,dp=2", "dp=3,tp=2"},
       .factor = [](int) { return 0.5; },
       .detail = "tp"});
  add({.name = "averaged over tp instead of dp",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             const auto across = plot.mesh["tp"].group();
             trainee.synchronize = [plot, across] { reduce(plot, across, ReduceOp::avg); };
           },
       .causes = {Cause::over_other_axis},
       .meshes = {"dp=2,tp=2", "tp=2,dp=2"},
       .detail = "tp"});
  add({.name = "not averaged over cp",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             const auto part = plot.mesh["dp"].group();
             trainee.synchronize = [plot, part] { reduce(plot, part, ReduceOp::avg); };
           },
       .causes = {Cause::partly_synchronized},
       .meshes = {"dp=2,cp=2", "cp=2,dp=2"},
       .factor = [](int) { return 2.0; },
       .detail = "cp"});
  add({.name = "mean of means of uneven rows",
       .plant = [](Trainee&, const Plot&) {},
       .causes = {Cause::weighted},
       .rows_each = {5, 2, 3, 1}});
  add({.name = "clipped on each rank",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             trainee.synchronize = [plot] {
               clip(plot, 0.02);
               average(plot);
             };
           },
       .causes = {Cause::weighted}});
  add({.name = "wrong sign on one rank",
       .plant = before([](at::Tensor& gradient) { gradient *= -1; }),
       .causes = {Cause::wrong_sign},
       .names_victim = true});
  add({.name = "two ranks with the same rows",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             if (plot.is_victim) {
               const auto own = plot.group.rank();
               const std::vector<std::int64_t> sizes(plot.options.rows.begin(), plot.options.rows.end());
               const auto other = to_index(own) == 0 ? 1 : to_index(own) - 1;
               const auto theirs = verifying::part_of(plot.batch, sizes, other);
               trainee.backward = [plot, theirs](const Rows&) {
                 auto loss = plot.kit.loss(theirs);
                 loss.backward();
                 return loss;
               };
             }
           },
       .causes = {Cause::replaced},
       .names_victim = true});
  add({.name = "not a number on one rank",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             if (plot.is_victim) {
               trainee.backward = [plot](const Rows& rows) {
                 auto loss = plot.kit.loss(rows) * std::nan("");
                 loss.backward();
                 return loss;
               };
             }
           },
       .causes = {Cause::not_finite},
       .names_victim = true});
  add({.name = "a gradient dropped before averaging",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             trainee.synchronize = [plot] {
               if (plot.is_victim) {
                 auto all = parameters_of(plot);
                 all[static_cast<std::size_t>(plot.seed) % all.size()].mutable_grad() = at::Tensor();
               }
               average_gradients(*plot.kit.module, plot.group);
             };
           },
       .causes = {Cause::missing},
       .names_parameter = true,
       .names_victim = true});
  add({.name = "a gradient dropped after averaging",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             trainee.synchronize = [plot] {
               average(plot);
               if (plot.is_victim) {
                 auto all = parameters_of(plot);
                 all[static_cast<std::size_t>(plot.seed) % all.size()].mutable_grad() = at::Tensor();
               }
             };
           },
       .causes = {Cause::gradient_missing},
       .names_parameter = true});
  add({.name = "rounded to bfloat16",
       .plant = after([](at::Tensor& gradient, const Plot&) { round_to(gradient, torch::kBFloat16); }),
       .causes = {Cause::rounded},
       .detail = "bfloat16"});
  add({.name = "sent as float16",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             trainee.synchronize = [plot] {
               each_gradient(plot, [](at::Tensor& gradient) { round_to(gradient, torch::kHalf); });
               average(plot);
             };
           },
       .causes = {Cause::rounded},
       .detail = "float16"});
  add({.name = "batch norm that is not synchronized",
       .plant = [](Trainee&, const Plot&) {},
       .causes = {Cause::rows_coupled},
       .models = {"norm"},
       .options = {.buffers = false}});
  add({.name = "dropout", .plant = [](Trainee&, const Plot&) {}, .causes = {Cause::random}, .models = {"dropout"}});
  add({.name = "another learning rate",
       .plant =
           [always](Trainee& trainee, const Plot& plot) {
             static const VerifyOptions kOther{.learning_rate = 0.011};
             const Plot other{plot.mesh, plot.group, plot.victim, plot.is_victim,
                              plot.kit,  plot.batch, kOther,      plot.seed};
             step_and(trainee, other, always, [](int) {});
           },
       .causes = {Cause::other_weights}});
  add({.name = "a loss with a constant",
       .plant =
           [](Trainee& trainee, const Plot& plot) {
             trainee.backward = [plot](const Rows& rows) {
               auto loss = plot.kit.loss(rows) + 0.5;
               loss.backward();
               return loss;
             };
           },
       .causes = {Cause::other_loss}});
  return bugs;
}

}  // namespace

const std::vector<Bug>& all_bugs() {
  static const auto kBugs = make_bugs();
  return kBugs;
}

}  // namespace tutti
