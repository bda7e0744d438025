// How much of synchronization is hidden behind backward: a GPT of ten million parameters on the ranks that it is run
// as. bench/overlap_hosts runs it on two hosts with a cable as slow as it asks for.
//
//   overlap ROUNDS SEQUENCES     JSON: times of a backward alone, of communication alone, and what of that was exposed

#include <cstdio>

#include "bench/measure.h"
#include "bench/options.h"
#include "bench/step_models.h"
#include <tutti/tutti.h>

namespace {

double median(std::vector<double> values) { return bench::summarize(std::move(values)).median_us; }

/// The slowest rank's.
double slowest(double value, const tutti::Group& group) {
  auto all = torch::full({1}, value, torch::kDouble);
  group.all_reduce(all, tutti::ReduceOp::max).wait();
  return all.item<double>();
}

double time_backward(bench::StepModel& model, const tutti::Group& group) {
  for (const auto& parameter : model.module->parameters()) {
    parameter.mutable_grad().reset();
  }
  auto loss = model.loss();
  group.barrier().wait();
  const auto start = bench::Clock::now();
  loss.backward();
  return slowest(bench::microseconds_since(start), group);
}

/// All buckets, one after the other, while nothing is computed.
double time_communication(const std::vector<at::Tensor>& buckets, const tutti::Group& group) {
  group.barrier().wait();
  const auto start = bench::Clock::now();
  std::vector<tutti::Work> works;
  for (const auto& bucket : buckets) {
    works.push_back(group.all_reduce(bucket, tutti::ReduceOp::avg));
  }
  for (auto& work : works) {
    work.wait();
  }
  return slowest(bench::microseconds_since(start), group);
}

/// The last step's buckets, on this rank, from its first gradient on.
void print_timeline(const tutti::StepReport& report) {
  const auto milliseconds = [&](tutti::StepReport::Clock::time_point time) {
    return std::chrono::duration<double, std::milli>(time - report.first_ready).count();
  };
  for (const auto& bucket : report.buckets) {
    std::printf("{\"bytes\": %zu, \"ready_ms\": %.1f, \"started_ms\": %.1f, \"reduced_ms\": %.1f}, ", bucket.bytes,
                milliseconds(bucket.ready), milliseconds(bucket.started), milliseconds(bucket.reduced));
  }
  std::printf("{\"backward_over_ms\": %.1f}]}\n", milliseconds(report.last_ready));
}

}  // namespace

int main(int count, char** words) {
  at::set_num_threads(1);
  const auto world = tutti::init();
  const auto& group = world.group();
  const int rounds = count > 1 ? bench::number_of<int>(words[1], "ROUNDS") : 10;
  const int sequences = count > 2 ? bench::number_of<int>(words[2], "SEQUENCES") : 4;
  auto alone = bench::make_step_model("gpt", tutti::to_int(world.rank()) + 1, sequences);
  auto together = bench::make_step_model("gpt", tutti::to_int(world.rank()) + 1, sequences);
  tutti::DataParallel<torch::nn::Module> model(together.module, group);
  std::vector<at::Tensor> buckets;
  std::vector<double> backward, communication, synchronized, exposed, hidden;
  for (int round = -2; round < rounds; ++round) {
    const auto plain = time_backward(alone, group);
    const auto both = time_backward(together, group);
    const auto report = *model.report();
    if (buckets.size() != report.buckets.size()) {
      buckets.clear();
      for (const auto& bucket : report.buckets) {
        buckets.push_back(torch::zeros({static_cast<std::int64_t>(bucket.bytes / sizeof(float))}));
      }
    }
    const auto by_itself = time_communication(buckets, group);
    const auto late = slowest(report.exposed().count() * 1e6, group);
    if (round >= 0) {
      backward.push_back(plain);
      synchronized.push_back(both);
      communication.push_back(by_itself);
      exposed.push_back(late);
      hidden.push_back(1 - late / by_itself);
    }
  }
  if (world.rank() == tutti::Rank{0}) {
    const auto bytes = model.report()->bytes();
    std::printf(
        "{\"ranks\": %d, \"bytes\": %zu, \"buckets\": %zu, \"backward_ms\": %.3f, \"communication_ms\": %.3f, "
        "\"synchronized_backward_ms\": %.3f, \"exposed_ms\": %.3f, \"hidden\": %.4f, \"hidden_worst\": %.4f, "
        "\"timeline\": [",
        group.size(), bytes, buckets.size(), median(backward) / 1e3, median(communication) / 1e3,
        median(synchronized) / 1e3, median(exposed) / 1e3, median(hidden),
        *std::min_element(hidden.begin(), hidden.end()));
    print_timeline(*model.report());
  }
  return 0;
}
