// What a reproducible sum of microbatches costs beside a plain one: ranks have as many of the addends each, in turn. By
// hand, and by DataParallel, with backward passes that only hand out the addends.
//
//   tutti run -n 2 -- microbatches [--size 25Mi] [--addends 8] [--rounds 21] [--anything]
//
// --anything: exponents between -100 and 100 instead of values as gradients are.

#include <chrono>
#include <cstdio>
#include <string_view>
#include <vector>

#include <torch/torch.h>

#include "bench/measure.h"
#include "bench/options.h"
#include <tutti/tutti.h>

namespace {

struct Options {
  std::size_t bytes = 25 << 20;
  int addends = 8;
  std::size_t rounds = 21;
  bool anything = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const bool more = i + 1 < argc;
    if (option == "--anything") {
      options.anything = true;
    } else if (option == "--size" && more) {
      options.bytes = bench::parse_size(argv[++i]);
    } else if (option == "--addends" && more) {
      options.addends = bench::number_in<int>(argv[++i], option, 1, 4096);
    } else if (option == "--rounds" && more) {
      options.rounds = bench::number_in<std::size_t>(argv[++i], option, 1, 1'000'000);
    } else {
      bench::fail("there are --size, --addends, --rounds and --anything");
    }
  }
  return options;
}

std::vector<at::Tensor> make_addends(const Options& options, int count, int rank) {
  torch::manual_seed(static_cast<std::uint64_t>(17 + rank));
  const auto elements = static_cast<std::int64_t>(options.bytes / sizeof(float));
  std::vector<at::Tensor> addends;
  for (int i = 0; i < count; ++i) {
    auto values = torch::randn({elements});
    addends.push_back(options.anything ? values * torch::exp2(torch::randint(-100, 100, {elements}).to(torch::kFloat))
                                       : values);
  }
  return addends;
}

/// A loss whose gradient is what it is given.
class HandOut : public torch::autograd::Function<HandOut> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& /*weights*/,
                            const at::Tensor& gradient) {
    context->saved_data["gradient"] = gradient;
    return torch::zeros({});
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& /*outer*/) {
    return {context->saved_data["gradient"].toTensor().clone(), at::Tensor()};
  }
};

/// One tensor of weights.
struct Weights : torch::nn::Module {
  explicit Weights(const at::Tensor& like) : tensor(register_parameter("tensor", torch::zeros_like(like))) {}
  at::Tensor tensor;
};

/// Steps of a model with as many backward passes as there are addends, of which the last synchronizes.
class Steps {
 public:
  Steps(const tutti::Group& group, const at::Tensor& like, tutti::Reduction reduction)
      : model_(std::make_shared<Weights>(like), group, {.mean = tutti::Mean::per_pass, .reduction = reduction}) {}

  void take(const std::vector<at::Tensor>& addends) {
    model_->zero_grad();
    {
      const auto pause = model_.no_sync();
      for (std::size_t i = 0; i + 1 < addends.size(); ++i) {
        HandOut::apply(model_->tensor, addends[i]).backward();
      }
    }
    HandOut::apply(model_->tensor, addends.back()).backward();
  }

 private:
  tutti::DataParallel<Weights> model_;
};

class Comparison {
 public:
  Comparison(const tutti::Group& group, std::vector<at::Tensor> addends)
      : group_(group),
        addends_(std::move(addends)),
        plain_(tutti::symmetric_empty(addends_[0].sizes(), torch::kFloat, group)),
        exact_(addends_[0], group),
        in_two_steps_(addends_[0], group),
        result_(torch::empty_like(addends_[0])),
        usual_steps_(group, addends_[0], tutti::Reduction::usual),
        exact_steps_(group, addends_[0], tutti::Reduction::reproducible) {}

  double plain() {
    const auto start = begin();
    plain_.copy_(addends_[0]);
    for (std::size_t i = 1; i < addends_.size(); ++i) {
      plain_.add_(addends_[i]);
    }
    group_.all_reduce(plain_, tutti::ReduceOp::avg).wait();
    return bench::microseconds_since(start);
  }

  double in_one_step() {
    const auto start = begin();
    for (const auto& addend : addends_) {
      exact_.add(addend);
    }
    exact_.round_over(group_, result_, divisor());
    return bench::microseconds_since(start);
  }

  double by_accumulators() {
    const auto start = begin();
    for (const auto& addend : addends_) {
      in_two_steps_.add(addend);
    }
    in_two_steps_.all_reduce(group_).wait();
    result_.copy_(in_two_steps_.rounded(divisor()));
    in_two_steps_.clear();
    return bench::microseconds_since(start);
  }

  double steps(tutti::Reduction reduction) {
    const auto start = begin();
    (reduction == tutti::Reduction::usual ? usual_steps_ : exact_steps_).take(addends_);
    return bench::microseconds_since(start);
  }

 private:
  bench::Clock::time_point begin() const {
    group_.barrier().wait();
    return bench::Clock::now();
  }
  std::int64_t divisor() const { return static_cast<std::int64_t>(addends_.size()) * group_.size(); }

  const tutti::Group& group_;
  std::vector<at::Tensor> addends_;
  at::Tensor plain_;
  tutti::ReproducibleSum exact_;
  tutti::ReproducibleSum in_two_steps_;
  at::Tensor result_;
  Steps usual_steps_;
  Steps exact_steps_;
};

void run(const Options& options) {
  torch::set_num_threads(1);
  const auto world = tutti::init();
  const auto& group = world.group();
  if (options.addends % group.size() != 0) {
    bench::fail("the addends are divided evenly over the ranks");
  }
  Comparison comparison(group, make_addends(options, options.addends / group.size(), tutti::to_int(group.rank())));
  std::vector<double> plain;
  std::vector<double> in_one_step;
  std::vector<double> by_accumulators;
  std::vector<double> usual_steps;
  std::vector<double> exact_steps;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    plain.push_back(comparison.plain());
    in_one_step.push_back(comparison.in_one_step());
    by_accumulators.push_back(comparison.by_accumulators());
    usual_steps.push_back(comparison.steps(tutti::Reduction::usual));
    exact_steps.push_back(comparison.steps(tutti::Reduction::reproducible));
  }
  if (group.rank() == tutti::Rank{0}) {
    const auto row = [](const char* what, const std::vector<double>& times, const std::vector<double>& plain_times) {
      const double median = bench::summarize(times).median_us;
      std::printf("%-32s %9.2f ms %7.2f times\n", what, median / 1000,
                  median / bench::summarize(plain_times).median_us);
    };
    std::printf("%d addends of %zu bytes, %s, over %d ranks\n", options.addends, options.bytes,
                options.anything ? "of anything" : "alike", group.size());
    row("added up, all_reduce", plain, plain);
    row("ReproducibleSum::round_over", in_one_step, plain);
    row("the same in two steps", by_accumulators, plain);
    row("DataParallel", usual_steps, usual_steps);
    row("DataParallel, reproducible", exact_steps, usual_steps);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "microbatches: %s\n", error.what());
    return 1;
  }
}
