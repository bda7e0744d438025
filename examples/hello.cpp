// The smallest program: every rank has a number, and together they know the mean.
//
//   tutti run -n 4 -- build/examples/hello

#include <iostream>

#include <torch/torch.h>

#include <tutti/tutti.h>

int main() try {
  const auto world = tutti::init();
  auto grad = torch::full({3}, tutti::to_int(world.rank()) + 1.0);
  world.group().all_reduce(grad, tutti::ReduceOp::avg).wait();
  std::cout << "rank " << tutti::to_int(world.rank()) << " of " << world.size() << ": mean " << grad[0].item<double>()
            << std::endl;
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
