#include "train/trainer.h"

#include <cmath>
#include <limits>
#include <optional>

#include "train/exchange.h"
#include "train/optimizers.h"
#include "tutti/gradient/clip.h"
#include "tutti/gradient/hook.h"

namespace tutti::train {
namespace {

constexpr std::int64_t kEvaluationTokens = 16384;  // at most
constexpr std::int64_t kEvaluationPass = 2048;

Gpt make_net(const Config& config) {
  Gpt net(model_size(config), config.seed);
  if (config.precision == Precision::bfloat16) {
    net->to(torch::kBFloat16);
  }
  return net;
}

DataParallelOptions parallel_options(const Config& config) {
  DataParallelOptions options{.mean = Mean::per_pass};
  if (config.reproducible) {
    options.reduction = Reduction::reproducible;
  }
  if (config.hook != Hook::none) {
    options.hook = cast_hook(config.hook == Hook::bf16 ? torch::kBFloat16 : torch::kHalf);
  }
  return options;
}

Batches make_batches(const Config& config, const Split& split, const Position& from) {
  return value_or_throw(
      Batches::make(Windows(split.training, *config.context),
                    {.batch = *config.batch_tokens / *config.context, .seed = config.seed, .from = from}));
}

}  // namespace

Trainer::Trainer(const Config& config, const Corpus& corpus, Group group, const Position& from)
    : config_(config),
      corpus_(corpus),
      group_(std::move(group)),
      split_(split(corpus.size(), config.evaluation_share)),
      batches_(make_batches(config, split_, from)),
      passes_(static_cast<int>(passes(config, group_.size()))),
      net_(make_net(config)),
      parallel_(net_, group_, parallel_options(config)),
      masters_(*net_),
      optimizer_(make_optimizer(config, masters_.parameters())),
      schedule_(learning_rate(config), *optimizer_) {}

StepDone Trainer::step(std::int64_t number) {
  StepDone done;
  done.clock.begin("data");
  schedule_.apply(*optimizer_, number);
  done.learning_rate = schedule_.rate().at(number);
  masters_.zero_grad();
  for (int pass = to_int(group_.rank()); pass < passes_; pass += group_.size()) {
    done.clock.begin("data");
    const auto [text, next] = texts(batches_.part(number, {.microbatch = pass, .microbatches = passes_}));
    std::optional<DataParallelBase::Pause> pause;
    if (pass + group_.size() < passes_) {
      pause.emplace(parallel_.no_sync());  // more to come
    }
    done.clock.begin("forward");
    auto loss = net_->loss(text, next);
    done.clock.begin("backward");
    loss.backward();
    done.losses.push_back(loss.item<double>());
  }
  done.clock.waited(*parallel_.report());
  done.clock.begin("optimizer", parallel_.report()->last_reduced);
  done.gradient_norm = clip_gradients(*net_, config_.clip > 0 ? config_.clip : std::numeric_limits<double>::infinity());
  if (std::isfinite(done.gradient_norm)) {
    masters_.step(*optimizer_);
  }
  done.clock.end();
  return done;
}

double Trainer::evaluate() {
  const torch::NoGradGuard no_grad;
  const auto context = *config_.context;
  const auto begins = Windows(split_.evaluation, context).some(std::max<std::int64_t>(1, kEvaluationTokens / context));
  const auto each = static_cast<std::size_t>(std::max<std::int64_t>(1, kEvaluationPass / context));
  const auto parts = (begins.size() + each - 1) / each;
  const auto ranks = static_cast<std::size_t>(group_.size());
  std::vector<double> own((parts + ranks - 1) / ranks);
  for (auto part = to_index(group_.rank()); part < parts; part += ranks) {
    const auto first = begins.begin() + static_cast<std::ptrdiff_t>(part * each);
    const auto count = std::min(each, begins.size() - part * each);
    own[part / ranks] = loss_of({first, first + static_cast<std::ptrdiff_t>(count)}) * static_cast<double>(count);
  }
  const auto all = gather(group_, own);
  double sum = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    sum += all[part % ranks][part / ranks];
  }
  return sum / static_cast<double>(begins.size());
}

double Trainer::loss_of(const std::vector<std::int64_t>& begins) {
  const auto [text, next] = texts(begins);
  return net_->loss(text, next).item<double>();
}

Trainer::Texts Trainer::texts(const std::vector<std::int64_t>& begins) const {
  const auto count = static_cast<std::int64_t>(begins.size());
  const auto length = *config_.context + 1;
  const auto bytes = torch::empty({count, length}, torch::kByte);
  auto* const data = bytes.data_ptr<std::uint8_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    throw_if_failed(
        corpus_.copy(begins[static_cast<std::size_t>(i)], {data + i * length, static_cast<std::size_t>(length)}));
  }
  const auto tokens = bytes.to(torch::kLong);
  return {.text = tokens.slice(1, 0, length - 1), .next = tokens.slice(1, 1)};
}

NamedTensors Trainer::weights() const {
  NamedTensors named;
  for (const auto& item : net_->named_parameters()) {
    named.emplace_back(item.key(), masters_.of(item.value()));
  }
  return named;
}

void Trainer::weights_changed() { masters_.give_weights(); }

std::size_t Trainer::most_passes() const {
  return static_cast<std::size_t>((passes_ + group_.size() - 1) / group_.size());
}

}  // namespace tutti::train
