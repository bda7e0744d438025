// Whole training steps over a slow cable: as usual, and with tutti::StepAhead, in turns. bench/overlap_hosts --ahead
// runs it on two hosts.
//
//   ahead ROUNDS SEQUENCES     JSON: milliseconds of a step, each a median over rounds of four steps

#include <cstdio>

#include "bench/measure.h"
#include "bench/options.h"
#include "bench/step_models.h"
#include <tutti/tutti.h>

namespace {

constexpr int kSteps = 4;  // in a row: what is left of the last is waited for

/// A model that is trained in one of the ways.
struct Trained {
  Trained(const tutti::Group& group, std::int64_t sequences)
      : step(bench::make_step_model("gpt", tutti::to_int(group.rank()) + 1, sequences)),
        model(step.module, group),
        optimizer(step.module->parameters(), torch::optim::AdamWOptions(1e-4)) {}

  bench::StepModel step;
  tutti::DataParallel<torch::nn::Module> model;
  torch::optim::AdamW optimizer;
};

/// Milliseconds of each of some steps, on the slowest rank.
template <class Step, class Finish>
double time_steps(const Trained& trained, const tutti::Group& group, const Step& step, const Finish& finish) {
  group.barrier().wait();
  const auto start = bench::Clock::now();
  for (int i = 0; i < kSteps; ++i) {
    trained.step.loss().backward();
    step();
  }
  finish();
  auto took = torch::full({1}, bench::microseconds_since(start) / 1e3 / kSteps, torch::kDouble);
  group.all_reduce(took, tutti::ReduceOp::max).wait();
  return took.item<double>();
}

}  // namespace

int main(int count, char** words) {
  at::set_num_threads(1);
  const auto world = tutti::init();
  const auto& group = world.group();
  const int rounds = count > 1 ? bench::number_of<int>(words[1], "ROUNDS") : 10;
  const int sequences = count > 2 ? bench::number_of<int>(words[2], "SEQUENCES") : 4;
  Trained usual(group, sequences);
  Trained early(group, sequences);
  tutti::StepAhead ahead(early.model, early.optimizer);
  std::vector<double> usual_ms, ahead_ms;
  for (int round = -1; round < rounds; ++round) {
    const auto as_usual = time_steps(
        usual, group,
        [&] {
          usual.optimizer.step();
          usual.optimizer.zero_grad();
        },
        [] {});
    const auto as_ahead = time_steps(
        early, group, [&] { ahead.step(); }, [&] { ahead.finish(); });
    if (round >= 0) {
      usual_ms.push_back(as_usual);
      ahead_ms.push_back(as_ahead);
    }
  }
  bool same = true;
  const auto wanted = usual.step.module->named_parameters();
  for (const auto& item : early.step.module->named_parameters()) {
    same = same && torch::equal(item.value(), wanted[item.key()]);
  }
  if (world.rank() == tutti::Rank{0}) {
    std::printf(
        "{\"usual_ms\": %.1f, \"ahead_ms\": %.1f, \"usual_exposed_ms\": %.1f, \"ahead_exposed_ms\": %.1f, "
        "\"same_bits\": "
        "%s}\n",
        bench::summarize(usual_ms).median_us, bench::summarize(ahead_ms).median_us,
        usual.model.report()->exposed().count() * 1e3, early.model.report()->exposed().count() * 1e3,
        same ? "true" : "false");
  }
  return 0;
}
