#include "train/logbook.h"

#include <cmath>
#include <ctime>
#include <filesystem>
#include <numbers>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "train/machine.h"
#include "tutti/base/whole_file.h"
#include "tutti/observe/joined.h"
#include "tutti/observe/page.h"
#include "tutti/observe/run_file.h"
#include "tutti/observe/trace.h"

namespace tutti::train {
namespace {

constexpr double kSmoothing = 0.9;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string now_text() { return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr))); }

const char* name_of(Ending ending) { return ending == Ending::finished ? "finished" : "interrupted"; }

}  // namespace

Logbook::Logbook(const Options& options)
    : options_(options), record_(options.ranks), console_(options.display), watch_(options.ranks) {
  record_.set("name", std::filesystem::path(*options.config.out).filename().string());
  record_.set("started", now_text());
  record_.set("mesh", {{{"axis", "dp"}, {"size", options.ranks}}});
  record_.set("configuration", nlohmann::json(to_json(options.config)));
  record_.set("machine", describe_machine());
}

Progress Logbook::progress_of(const Step& step, double loss, double exposed) {
  quick_ = quick_ == 0 ? step.seconds : kSmoothing * quick_ + (1 - kSmoothing) * step.seconds;
  const auto& config = options_.config;
  const auto made = static_cast<double>(step.number - options_.first_step);
  return {.step = step.number,
          .steps = config.steps,
          .loss = loss,
          .evaluation_loss = step.evaluation.value_or(kUnknown),
          .tokens_per_s = static_cast<double>(*config.batch_tokens) / quick_,
          .gradient_norm = step.gradient_norm,
          .learning_rate = step.learning_rate,
          .exposed = exposed,
          .eta_s = seconds_since(began_) / made * static_cast<double>(config.steps - step.number)};
}

void Logbook::step(const Step& step, std::span<const StepNews> ranks) {
  const auto loss = mean_loss(ranks);
  std::vector<observe::RankTimes> times;
  double exposed = 0;
  for (const auto& rank : ranks) {
    times.push_back(rank.times);
    exposed += rank.times.exposed / 1e3 / static_cast<double>(ranks.size());
  }
  seconds_ += step.seconds;
  exposed_ += exposed;
  if (options_.config.record) {
    record_.step({.step = step.number,
                  .loss = loss,
                  .gradient_norm = step.gradient_norm,
                  .learning_rate = step.learning_rate,
                  .tokens_per_s = static_cast<double>(*options_.config.batch_tokens) / step.seconds},
                 times);
    record_.traffic("all_reduce", "dp", step.buckets, step.bytes);
  }
  if (step.evaluation) {
    evaluation_ = *step.evaluation;
    record_.evaluation(step.number, evaluation_);
  }
  last_ = progress_of(step, loss, exposed / step.seconds);
  console_.progress(last_);
  tell(watch_.step(step.number, ranks, step.gradient_norm));
}

void Logbook::tell(const std::vector<observe::RunEvent>& events) {
  for (const auto& event : events) {
    console_.say("note: " + event.text);
    console_.object(
        nlohmann::json{{"event", event.kind}, {"step", event.step}, {"rank", event.rank}, {"text", event.text}}.dump());
    record_.event(event);
  }
}

void Logbook::timeline(std::int64_t step, const std::vector<std::vector<double>>& rows) {
  std::vector<observe::RankTimeline> ranks;
  for (const auto& row : rows) {
    ranks.push_back(timeline_from_row(static_cast<int>(ranks.size()), row));
  }
  record_.timeline(step, std::move(ranks));
}

void Logbook::diverged(std::int64_t step, Rank rank, const std::string& why) {
  if (const auto event = watch_.diverged(step, rank, why)) {
    tell({*event});
  }
}

/// With what was recorded before the training went on, if that is there.
nlohmann::json Logbook::whole_run(const std::string& folder) {
  auto run = record_.to_json();
  if (options_.first_step == 0) {
    return run;
  }
  const auto before = observe::read_run(folder + "/run.json");
  if (!before) {
    console_.say("note: the report begins with this part of the run: " + before.error().message);
    return run;
  }
  return observe::joined(before.value(), std::move(run));
}

Result<std::vector<std::string>> Logbook::write(const std::string& folder, Ending ending) {
  std::vector<std::string> paths;
  for (const auto* name : {"/model.safetensors", "/train.json"}) {
    if (std::error_code error; std::filesystem::exists(folder + name, error)) {
      paths.push_back(folder + name);
    }
  }
  if (!options_.config.record) {
    return paths;
  }
  record_.set("status", name_of(ending));
  record_.set("duration_s", seconds_since(began_));
  const auto run = whole_run(folder);
  std::vector<std::pair<std::string, std::string>> files{{folder + "/run.json", run.dump()}};
  if (const auto trace = observe::trace_of(run)) {
    files.emplace_back(folder + "/trace.json", trace.value().dump());
  }
  if (auto page = observe::report_page(std::span(&run, 1))) {
    files.emplace_back(folder + "/report.html", std::move(page).value());
  } else {
    console_.say("note: " + page.error().message);
  }
  for (const auto& [path, text] : files) {
    if (const auto written = write_whole(path, text); !written) {
      return written.error();
    }
    paths.push_back(path);
  }
  return paths;
}

nlohmann::ordered_json Logbook::figures(Ending ending) const {
  const auto made = static_cast<double>(last_.step - options_.first_step);
  return {{"status", name_of(ending)},
          {"step", last_.step},
          {"loss", last_.loss},
          {"evaluation_loss", evaluation_},
          {"bits_per_byte", evaluation_ / std::numbers::ln2},
          {"tokens_per_s", made * static_cast<double>(*options_.config.batch_tokens) / seconds_},
          {"exposed", exposed_ / seconds_},
          {"seconds", seconds_since(began_)}};
}

void Logbook::summary(Ending ending, const std::vector<std::string>& paths, const std::string& sample) {
  const auto all = figures(ending);
  auto line = all;
  line["files"] = paths;
  line["sample"] = sample;
  console_.object(
      nlohmann::ordered_json{{"summary", line}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  for (const auto& sentence : watch_.counts()) {
    console_.say("note: " + sentence);
  }
  const auto value = [&](const char* key) { return all[key].get<double>(); };
  if (!sample.empty()) {
    console_.say("\nWhat it writes:\n" + sample);
  }
  console_.say(fmt::format(
      "\nloss {:.4f}{}, {} tokens/s, {:.1f} % of the time waiting for communication, {}", last_.loss,
      std::isnan(evaluation_)
          ? ""
          : fmt::format("; on text it has not seen {:.4f} ({:.3f} bits per byte)", evaluation_, value("bits_per_byte")),
      count_text(value("tokens_per_s")), 100 * value("exposed"), duration_text(value("seconds"))));
  for (const auto& path : paths) {
    console_.say("  " + path);
  }
}

}  // namespace tutti::train
