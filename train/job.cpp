#include "train/job.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "train/checkpoint.h"
#include "train/exchange.h"
#include "train/interrupt.h"
#include "train/logbook.h"
#include "train/machine.h"
#include "train/position_file.h"
#include "train/printable.h"
#include "train/sampler.h"
#include "train/saving.h"
#include "train/trainer.h"
#include "tutti/verify/guard.h"

namespace tutti::train {
namespace {

constexpr int kGuardInterval = 50;

bool all_finite(const NamedTensors& weights) {
  return std::all_of(weights.begin(), weights.end(),
                     [](const auto& named) { return named.second.isfinite().all().template item<bool>(); });
}

/// One rank's part in the job.
class Job {
 public:
  Job(const World& world, const JobOptions& options, const Config& config, const Corpus& corpus);
  int run();

 private:
  bool step(std::int64_t number);
  std::vector<StepNews> exchange(const StepDone& done) const;
  void show(std::int64_t number, const StepDone& done, const std::vector<StepNews>& news, double seconds);
  void record_timeline(std::int64_t number, const StepClock& clock);
  void record_memory();
  void guard(std::int64_t number);
  bool evaluates_after(std::int64_t number) const;
  void look_at_data();
  bool save();
  std::string write_sample();
  int end(Ending ending);
  int judge() const;

  const JobOptions& options_;
  const Config& config_;
  const Corpus& corpus_;
  const Position from_;
  Trainer trainer_;
  ParameterGuard guard_;
  std::optional<Logbook> logbook_;  // on the first rank
  std::int64_t made_;               // steps
  double loss_ = 0;                 // of the last step
  bool data_changed_ = false;       // and that was said
};

Job::Job(const World& world, const JobOptions& options, const Config& config, const Corpus& corpus)
    : options_(options),
      config_(config),
      corpus_(corpus),
      from_(options.resume ? value_or_throw(read_position(options.folder)) : Position{}),
      trainer_(config, corpus, world.mesh(config.mesh)["dp"], from_),
      guard_(*trainer_.model(), trainer_.group(), {.every = kGuardInterval}),
      made_(from_.step) {
  if (options.resume || config.weights) {
    throw_if_failed(load_weights(options.resume ? options.folder : *config.weights, trainer_.weights()));
    trainer_.weights_changed();
  }
  if (options.resume) {
    throw_if_failed(load_optimizer(options.folder, trainer_.optimizer()));
  }
  if (world.rank() == Rank{0}) {
    logbook_.emplace(Logbook::Options{
        .config = config, .ranks = trainer_.group().size(), .first_step = from_.step, .display = options.display});
  }
}

int Job::run() {
  while (made_ < config_.steps) {
    if (step(made_)) {
      return end(made_ < config_.steps ? Ending::interrupted : Ending::finished);
    }
    if (config_.save_interval > 0 && made_ % config_.save_interval == 0 && made_ < config_.steps) {
      save();
    }
  }
  return end(Ending::finished);
}

/// Whether somebody wants it to be the last.
bool Job::step(std::int64_t number) {
  const auto began = StepClock::Clock::now();
  const auto done = trainer_.step(number);
  const auto news = exchange(done);
  const std::chrono::duration<double> seconds = StepClock::Clock::now() - began;
  made_ = number + 1;
  loss_ = mean_loss(news);
  guard(number);
  show(number, done, news, seconds.count());
  return std::any_of(news.begin(), news.end(), [](const StepNews& one) { return one.wants_to_stop; });
}

std::vector<StepNews> Job::exchange(const StepDone& done) const {
  const StepNews own{.times = done.clock.times(), .wants_to_stop = Interrupt::asked(), .losses = done.losses};
  std::vector<StepNews> news;
  for (const auto& row : gather(trainer_.group(), own.row(trainer_.most_passes()))) {
    news.push_back(StepNews::from_row(row));
  }
  return news;
}

void Job::show(std::int64_t number, const StepDone& done, const std::vector<StepNews>& news, double seconds) {
  if (config_.record && observe::wants_timeline(number + 1, config_.steps)) {
    record_timeline(number, done.clock);
  }
  const auto evaluation = evaluates_after(number) ? std::optional(trainer_.evaluate()) : std::nullopt;
  if (logbook_) {
    if (evaluation) {
      look_at_data();
    }
    const auto report = trainer_.report();
    logbook_->step({.number = number + 1,
                    .gradient_norm = done.gradient_norm,
                    .learning_rate = done.learning_rate,
                    .seconds = seconds,
                    .evaluation = evaluation,
                    .buckets = static_cast<std::int64_t>(report->buckets.size()),
                    .bytes = static_cast<std::int64_t>(report->bytes())},
                   news);
  }
}

bool Job::evaluates_after(std::int64_t number) const {
  const auto made = number + 1;
  const bool due = config_.evaluation_interval > 0 && made % config_.evaluation_interval == 0;
  return config_.evaluation_share > 0 && (due || made == config_.steps);
}

/// Somebody may write to files that are being trained on.
void Job::look_at_data() {
  if (const auto same = corpus_.unchanged(); !same && !std::exchange(data_changed_, true)) {
    logbook_->say("note: " + same.error().message);
  }
}

void Job::record_timeline(std::int64_t number, const StepClock& clock) {
  const auto own = clock.timeline(to_int(trainer_.group().rank()));
  const auto rows = gather(trainer_.group(), timeline_row(own, trainer_.most_passes(), own.buckets.size()));
  if (logbook_) {
    logbook_->timeline(number + 1, rows);
  }
}

/// A rank that drifted away is said, not fatal: what it computes is averaged with the others', as before.
void Job::guard(std::int64_t number) {
  try {
    guard_.step();
  } catch (const Exception& error) {
    if (error.code() != Code::mismatch) {
      throw;
    }
    if (logbook_) {
      logbook_->diverged(number + 1, error.rank().value_or(Rank{0}), error.error().message);
    }
  }
}

void Job::record_memory() {
  std::int64_t parameters = 0;
  for (const auto& parameter : trainer_.model()->parameters()) {
    parameters += static_cast<std::int64_t>(parameter.nbytes());
  }
  std::int64_t masters = 0;
  for (const auto& [name, weight] : trainer_.weights()) {
    masters += static_cast<std::int64_t>(weight.nbytes());
  }
  const auto rows = gather(trainer_.group(), std::vector<double>{static_cast<double>(most_resident_bytes())});
  if (!logbook_) {
    return;
  }
  std::vector<std::int64_t> resident;
  for (const auto& row : rows) {
    resident.push_back(static_cast<std::int64_t>(row[0]));
  }
  const auto everywhere = [&](std::int64_t bytes) { return std::vector(resident.size(), bytes); };
  auto& record = logbook_->record();
  record.resident(resident);
  record.memory("parameters", everywhere(parameters));
  record.memory("gradients", everywhere(static_cast<std::int64_t>(trainer_.report()->bytes())));
  record.memory("optimizer", everywhere(2 * masters));
  if (masters != parameters) {
    record.memory("masters", everywhere(masters));
  }
}

/// Whether it could be written. What nobody could go on from is not: the last good one stays.
bool Job::save() {
  if (!std::isfinite(loss_)) {
    return true;
  }
  bool written = true;
  if (logbook_) {
    const auto weights = trainer_.weights();
    if (!all_finite(weights)) {
      logbook_->say("note: weights are not numbers any more, and are not saved");
      return all_agree(trainer_.group(), true);
    }
    const auto saved = save_checkpoint(options_.folder, {.weights = weights,
                                                         .size = trainer_.model()->size(),
                                                         .config = config_,
                                                         .optimizer = trainer_.optimizer(),
                                                         .position = trainer_.position(made_)});
    written = saved.ok();
    if (!written) {
      std::fputs(fmt::format("tutti train: {}\n", saved.error().message).c_str(), stderr);
    }
  }
  return all_agree(trainer_.group(), written);
}

std::string Job::write_sample() {
  if (config_.sample_length == 0 || !std::isfinite(loss_)) {
    return "";
  }
  const auto text =
      sample(trainer_.model(), config_.sample_prompt, {.length = config_.sample_length, .seed = config_.seed});
  logbook_->record().set("sample", {{"prompt", config_.sample_prompt}, {"text", printable(text)}});
  return printable(config_.sample_prompt + text);
}

int Job::end(Ending ending) {
  if (logbook_) {
    logbook_->finish();
  }
  if (config_.record && trainer_.report()) {
    record_memory();
  }
  bool written = save();
  if (written && logbook_) {
    const auto text = ending == Ending::finished ? write_sample() : "";
    const auto paths = logbook_->write(options_.folder, ending);
    if (paths) {
      logbook_->summary(ending, paths.value(), text);
    } else {
      std::fputs(fmt::format("tutti train: {}\n", paths.error().message).c_str(), stderr);
    }
    written = paths.ok();
  }
  if (!all_agree(trainer_.group(), written)) {
    return 1;
  }
  if (ending == Ending::interrupted && logbook_) {
    logbook_->say(fmt::format("\nstopped after step {} of {}; to go on: tutti train --config {}/train.json --resume",
                              made_, config_.steps, options_.folder));
  }
  return ending == Ending::interrupted ? kInterrupted : judge();
}

/// A training that ends without a loss has not succeeded.
int Job::judge() const {
  if (std::isfinite(loss_)) {
    return 0;
  }
  if (logbook_) {
    std::fputs(
        "tutti train: the last loss is not a number, so weights are not saved; a smaller --learning-rate may help\n",
        stderr);
  }
  return 1;
}

/// Each rank opens the files by itself, and somebody may have written to them in between.
void check_same_data(const Group& group, const Corpus& corpus) {
  const auto sizes = gather(group, std::vector<double>{static_cast<double>(corpus.size())});
  if (std::any_of(sizes.begin(), sizes.end(), [&](const auto& size) { return size != sizes[0]; })) {
    throw Exception({Code::mismatch, "the data changed while ranks opened it: try again when nobody writes to it"});
  }
}

}  // namespace

int train(const World& world, const JobOptions& options) {
  const auto config = value_or_throw(read_config(options.folder + "/" + kStarting));
  if (config.reproducible) {
    torch::set_num_threads(1);  // how a sum is divided over threads is seen in its bits
  }
  const auto corpus = value_or_throw(Corpus::open(config.data));
  check_same_data(world.group(), corpus);
  return Job(world, options, config, corpus).run();
}

}  // namespace tutti::train
