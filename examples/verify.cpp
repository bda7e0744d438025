// Does a network on many ranks learn what it learns on one? Trains a few steps both ways and compares everything.
//
//   tutti run -n 4 -- build/examples/verify          says PASS, with figures
//   tutti run -n 4 -- build/examples/verify --wrong  adds gradients up and forgets to divide: says what is wrong, and
//   why

#include <cstdio>
#include <cstring>

#include <torch/torch.h>

#include <tutti/tutti.h>

namespace {

namespace nn = torch::nn;

nn::Sequential make_net() {
  torch::manual_seed(17);  // every rank, and every time, the same
  return nn::Sequential(nn::Linear(12, 32), nn::Tanh(), nn::Linear(32, 32), nn::Tanh(), nn::Linear(32, 5));
}

torch::Tensor loss_of(nn::Sequential& net, const tutti::Rows& rows) {
  return nn::functional::cross_entropy(net->forward(rows[0]), rows[1]);
}

/// By hand, with a mistake.
tutti::Trainee make_wrong(const tutti::Mesh& mesh, tutti::Role role) {
  auto net = make_net();
  net->to(torch::kDouble);
  tutti::Trainee trainee{.module = net.ptr(), .loss = [net](const auto& rows) mutable { return loss_of(net, rows); }};
  if (role == tutti::Role::together) {
    trainee.synchronize = [net, group = mesh.group()] {
      for (auto& parameter : net->parameters()) {
        group.all_reduce(parameter.mutable_grad()).wait();
      }
    };
  }
  return trainee;
}

int run(bool wrong) {
  const auto world = tutti::init();
  torch::set_num_threads(1);
  torch::manual_seed(23);  // the whole batch, on every rank
  const tutti::Rows batch{torch::randn({61, 12}), torch::randint(5, {61})};
  const auto mesh = world.mesh("dp=*");
  // 61 rows are not even over 2, 3 or 4 ranks, so every sample counts once.
  tutti::VerifyOptions options{.dtype = torch::kFloat64, .data_parallel = {.mean = tutti::Mean::per_sample}};
  const auto report =
      wrong ? tutti::verify(make_wrong, {batch[0].slice(0, 0, 60), batch[1].slice(0, 0, 60)}, mesh, options)
            : tutti::verify(make_net, loss_of, batch, mesh, options);
  return tutti::conclude(report, world.rank());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 && std::strcmp(argv[1], "--wrong") == 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
