// Whole training steps of the ranks that it is run as, by one thread each: without synchronization, with DataParallel,
// with LibTorch's own c10d::Reducer on our backend, and with reproducible sums. They take turns; times are of the
// slowest rank, and CPU times (which waiting for others does not count in) the ranks' average. bench/compare_steps puts
// PyTorch's beside it.
//
//   tutti run -n 2 -- build/bench/steps gpt 20                      the model (gpt, cnn, mlp), and how many rounds
//   tutti run -n 2 -- build/bench/steps gpt 20 [--json] none tutti  those alone, and what they take over the first

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <numeric>

#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "bench/measure.h"
#include "bench/step_models.h"
#include <tutti/tutti.h>

namespace {

using bench::StepModel;

/// Of all threads of this process.
double cpu_microseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

/// One way to train.
struct Contestant {
  std::string name;
  StepModel model;
  std::unique_ptr<torch::optim::SGD> optimizer = nullptr;
  std::shared_ptr<void> helper = nullptr;  // what synchronizes
  std::function<void()> before_backward = [] {};
  std::vector<double> microseconds = {};
  std::vector<double> cpu = {};

  /// Wall and CPU time.
  std::pair<double, double> step() {
    const auto start = bench::Clock::now();
    const auto cpu_start = cpu_microseconds();
    for (const auto& parameter : model.module->parameters()) {
      parameter.mutable_grad().reset();  // zero_grad would try to detach the Reducer's views
    }
    auto loss = model.loss();
    before_backward();
    loss.backward();
    optimizer->step();
    return {bench::microseconds_since(start), cpu_microseconds() - cpu_start};
  }
};

/// LibTorch before 2.13 takes one argument less.
template <class Reducer, class... Arguments>
std::shared_ptr<Reducer> construct(Arguments... arguments) {
  using Caps = std::vector<std::int64_t>;
  if constexpr (std::is_constructible_v<Reducer, Arguments..., Caps>) {
    return std::make_shared<Reducer>(arguments..., Caps());
  } else {
    return std::make_shared<Reducer>(arguments...);
  }
}

std::shared_ptr<c10d::Reducer> make_reducer(const StepModel& model, const tutti::Group& group) {
  auto parameters = model.module->parameters();
  std::reverse(parameters.begin(), parameters.end());
  std::vector<std::vector<std::size_t>> buckets(1, std::vector<std::size_t>(parameters.size()));
  std::iota(buckets[0].begin(), buckets[0].end(), 0);  // until it has learned better ones
  constexpr std::int64_t kMi = 1 << 20;
  return construct<c10d::Reducer>(parameters, buckets, group.process_group(),
                                  std::vector<bool>(parameters.size(), false), 25 * kMi, false, true,
                                  std::unordered_map<std::size_t, std::string>(), kMi, false, false);
}

Contestant make(const std::string& name, const std::string& model, const tutti::World& world) {
  Contestant one{.name = name, .model = bench::make_step_model(model, tutti::to_int(world.rank()) + 1)};
  const bool reproducible = name == "reproducible";
  if (name == "tutti" || name == "copied" || reproducible) {
    const auto reduction = reproducible ? tutti::Reduction::reproducible : tutti::Reduction::usual;
    one.helper = std::make_shared<tutti::DataParallel<torch::nn::Module>>(
        one.model.module, world.group(),
        tutti::DataParallelOptions{.reduction = reduction, .in_place = name != "copied"});
  } else if (name == "reducer") {
    auto reducer = make_reducer(one.model, world.group());
    one.before_backward = [reducer] { reducer->prepare_for_backward({}); };
    one.helper = reducer;
  }
  one.optimizer = std::make_unique<torch::optim::SGD>(one.model.module->parameters(), 1e-4);
  return one;
}

/// For people.
void print_text(const std::string& model, const std::vector<Contestant>& contestants) {
  const auto over = [&](const Contestant& one, std::vector<double> Contestant::*times) {
    std::vector<double> differences;
    for (std::size_t i = 0; i < (one.*times).size(); ++i) {
      differences.push_back((one.*times)[i] - (contestants[0].*times)[i]);
    }
    return bench::summarize(differences);
  };
  for (const auto& one : contestants) {
    const auto more = over(one, &Contestant::microseconds);
    const auto cpu = over(one, &Contestant::cpu);
    std::printf("%-8s %-12s %8.0f us  over %8.0f us (%.0f .. %.0f)  of CPU %8.0f us (%.0f .. %.0f)\n", model.c_str(),
                one.name.c_str(), bench::summarize(one.microseconds).median_us, more.median_us, more.p10_us,
                more.p90_us, cpu.median_us, cpu.p10_us, cpu.p90_us);
  }
  for (const auto& one : contestants) {
    if (one.name == "tutti") {
      const auto ours = std::static_pointer_cast<tutti::DataParallel<torch::nn::Module>>(one.helper);
      std::printf("%s\n", ours->report()->text().c_str());
    }
  }
}

/// For programs: a line for each contestant.
void print_json(const std::string& model, const std::vector<Contestant>& contestants) {
  const auto list = [](const char* name, const std::vector<double>& values) {
    std::printf(", \"%s\": [", name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::printf("%s%.1f", i == 0 ? "" : ", ", values[i]);
    }
    std::printf("]");
  };
  for (const auto& one : contestants) {
    std::printf("{\"model\": \"%s\", \"contestant\": \"%s\"", model.c_str(), one.name.c_str());
    list("us", one.microseconds);
    list("cpu_us", one.cpu);
    std::printf("}\n");
  }
}

}  // namespace

int main(int count, char** words) {
  at::set_num_threads(1);
  const auto world = tutti::init();
  const std::string model = count > 1 ? words[1] : "gpt";
  const int rounds = count > 2 ? bench::number_of<int>(words[2], "ROUNDS") : 20;
  const bool json = count > 3 && std::string(words[3]) == "--json";
  std::vector<std::string> names(words + std::min(count, json ? 4 : 3), words + count);
  if (names.empty()) {
    names = {"none", "tutti", "copied", "reducer", "reproducible"};
  }
  std::vector<Contestant> contestants;
  for (const auto& name : names) {
    contestants.push_back(make(name, model, world));
  }
  for (int round = -3; round < rounds; ++round) {
    for (auto& one : contestants) {
      world.group().barrier().wait();
      const auto [wall, cpu] = one.step();
      auto slowest = torch::full({1}, wall, torch::kDouble);
      auto average = torch::full({1}, cpu, torch::kDouble);
      world.group().all_reduce(slowest, tutti::ReduceOp::max).wait();
      world.group().all_reduce(average, tutti::ReduceOp::avg).wait();
      if (round >= 0) {
        one.microseconds.push_back(slowest.item<double>());
        one.cpu.push_back(average.item<double>());
      }
    }
  }
  if (world.rank() == tutti::Rank{0}) {
    json ? print_json(model, contestants) : print_text(model, contestants);
  }
  return 0;
}
