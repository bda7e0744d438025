// A rank that dies, or does something else than the others, in the middle of a backward: says how this rank's ended.
//
//   RANK=0 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=... backward_faults kill|mismatch|throw VICTIM

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <torch/torch.h>

#include <tutti/tutti.h>

namespace {

namespace nn = torch::nn;

/// Does what it is told to in the middle of a backward.
struct Fault : torch::autograd::Function<Fault> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const std::string& kind, const tutti::Group& group) {
    context->saved_data["kind"] = kind;
    context->saved_data["group"] = reinterpret_cast<std::int64_t>(&group);
    return x.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto kind = context->saved_data["kind"].toStringRef();
    if (kind == "kill") {
      std::raise(SIGKILL);
    } else if (kind == "throw") {
      throw std::runtime_error("out of luck");
    } else if (kind == "mismatch") {
      const auto* const group = reinterpret_cast<const tutti::Group*>(context->saved_data["group"].toInt());
      group->all_reduce(torch::ones({17})).wait();
    }
    return {gradients[0], torch::Tensor(), torch::Tensor()};
  }
};

std::vector<torch::Tensor> copy_of(const nn::Module& module) {
  std::vector<torch::Tensor> copies;
  for (const auto& parameter : module.parameters()) {
    copies.push_back(parameter.detach().clone());
  }
  return copies;
}

int run(const std::string& kind, int victim) {
  const auto world = tutti::init();
  torch::set_num_threads(1);
  torch::manual_seed(3);
  nn::Sequential early(nn::Linear(61, 61), nn::Tanh(), nn::Linear(61, 61), nn::Tanh());
  nn::Sequential late(nn::Linear(61, 61), nn::Tanh(), nn::Linear(61, 61), nn::Tanh());
  const nn::ModuleList net(early, late);
  const tutti::DataParallel model(net, world.group(), {.bucket_bytes = 20000, .first_bucket_bytes = 9000});
  torch::optim::SGD optimizer(net->parameters(), 0.01);
  const auto x = torch::randn({7, 61});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    late->forward(early->forward(x)).square().mean().backward();
    optimizer.step();
  }
  optimizer.zero_grad();
  const auto before = copy_of(*net);
  const bool own = tutti::to_int(world.rank()) == victim;
  std::string ended = "nothing happened";
  try {
    const auto hidden = early->forward(x);
    late->forward(own ? Fault::apply(hidden, kind, world.group()) : hidden).square().mean().backward();
  } catch (const std::exception& error) {
    ended = error.what();
  }
  bool same = true;
  bool none = true;
  for (std::size_t i = 0; i < before.size(); ++i) {
    same = same && torch::equal(before[i], net->parameters()[i]);
    none = none && !net->parameters()[i].grad().defined();
  }
  std::printf("rank %d: %s; parameters %s, gradients %s\n", tutti::to_int(world.rank()), ended.c_str(),
              same ? "as before" : "CHANGED", none ? "not set" : "SET");
  std::fflush(stdout);
  std::_Exit(0);  // a world that is broken cannot be left in good order
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: backward_faults kill|mismatch|throw VICTIM\n");
    return 2;
  }
  return run(words[1], std::atoi(words[2]));
}
