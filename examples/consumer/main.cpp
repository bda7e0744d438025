// Three ranks, as threads of this process, add their tensors up.
#include <cstdio>
#include <cstdlib>

#include <torch/torch.h>

#include <tutti/tutti.h>

int main() {
  tutti::run_ranks(3, [](tutti::World& world) {
    auto group = world.group();
    auto numbers = tutti::symmetric_empty({1003}, torch::kFloat, group);  // in memory that the ranks share
    numbers.fill_(1.0 + tutti::to_int(group.rank()));
    group.all_reduce(numbers).wait();
    if (!numbers.eq(6.0).all().item<bool>()) {  // 1 + 2 + 3
      std::fprintf(stderr, "consumer: wrong sum\n");
      std::exit(1);
    }
    if (tutti::to_int(group.rank()) == 0) {
      std::printf("three ranks agree: 1 + 2 + 3 = %.0f\n", numbers[0].item<double>());
    }
  });
  return 0;
}
