// Gradients that backward computes where they will lie: whatever happens to the memory that is lent, they have the same
// bits as gradients that are copied.

#include "tutti/gradient/lending.h"

#include <gtest/gtest.h>

#include "tutti/gradient/data_parallel.h"
#include "tutti/gradient/test_models.h"
#include "tutti/gradient/test_ranks.h"

namespace tutti {
namespace {

constexpr std::int64_t kWide = 96;  // 72 KiB of float64 in a layer's weights: large enough to be lent
constexpr std::size_t kWeights = kWide * kWide * sizeof(double);

struct WideImpl : torch::nn::Module {
  WideImpl() {
    for (const auto* name : {"first", "second", "third"}) {
      layers.push_back(register_module(name, torch::nn::Linear(kWide, kWide)));
    }
    set_parameters(*this, 1);
  }
  /// Through layers in that order.
  torch::Tensor forward(torch::Tensor x, const std::vector<std::size_t>& order = {0, 1, 2}) {
    for (const auto layer : order) {
      x = torch::tanh(layers[layer](x));
    }
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};
TORCH_MODULE(Wide);

torch::Tensor batch(const Group& group, int step) { return drawn({4, kWide}, to_int(group.rank()) * 100 + step); }

/// Two that differ in nothing else: one lends its memory, the other does not.
struct Twins {
  explicit Twins(Group& group, DataParallelOptions options = {.bucket_bytes = 2 * kWeights, .first_bucket_bytes = 1})
      : here(net, group, options) {
    options.in_place = false;
    there.emplace(other, group, options);
  }

  void expect_same(int step) {
    const auto expected = other->named_parameters();
    for (const auto& item : net->named_parameters()) {
      const auto& wanted = expected[item.key()].grad();
      ASSERT_EQ(item.value().grad().defined(), wanted.defined()) << item.key() << " in step " << step;
      EXPECT_TRUE(!wanted.defined() || torch::equal(item.value().grad(), wanted)) << item.key() << " in step " << step;
    }
    EXPECT_EQ(there->report()->in_place, 0U);
  }

  Wide net;
  Wide other;
  DataParallel<WideImpl> here;
  std::optional<DataParallel<WideImpl>> there = {};
};

TEST(Lending, GradientsAreComputedWhereTheyWillLie) {
  on_ranks(2, [](Group& group) {
    Twins twins(group);
    for (int step = 0; step < 8; ++step) {
      twins.net->zero_grad();
      twins.other->zero_grad();
      mean_loss(twins.here->forward(batch(group, step))).backward();
      mean_loss((*twins.there)->forward(batch(group, step))).backward();
      twins.expect_same(step);
      // Those of the last layer are computed before anything shows that backward runs.
      EXPECT_EQ(twins.here.report()->in_place, step < 2 ? 0 : 2 * kWeights) << "in step " << step;
    }
  });
}

TEST(Lending, GradientsThatAreAddedToStayWhereTheyAre) {
  on_ranks(2, [](Group& group) {
    Twins twins(group);
    for (int step = 0; step < 9; ++step) {
      twins.net->zero_grad(step % 3 == 0);
      twins.other->zero_grad(step % 3 == 0);
      for (int pass = 0; pass < 1 + step / 5; ++pass) {
        mean_loss(twins.here->forward(batch(group, step + pass))).backward();
        mean_loss((*twins.there)->forward(batch(group, step + pass))).backward();
      }
      const auto expected = twins.other->named_parameters();
      for (const auto& item : twins.net->named_parameters()) {
        EXPECT_TRUE(torch::equal(item.value().grad(), expected[item.key()].grad()))
            << item.key() << " in step " << step;
      }
    }
  });
}

TEST(Lending, WhoKeepsAGradientKeepsIt) {
  on_ranks(2, [](Group& group) {
    Twins twins(group);
    std::vector<torch::Tensor> kept;
    std::vector<torch::Tensor> copies;
    int step = 0;
    for (auto& layer : twins.net->layers) {
      layer->weight.register_hook([&](const torch::Tensor& gradient) {
        if (step == 5 || step == 6) {
          kept.push_back(step == 5 ? gradient : gradient._lazy_clone());
          copies.push_back(gradient.clone());
        }
      });
    }
    for (; step < 12; ++step) {
      twins.net->zero_grad();
      twins.other->zero_grad();
      mean_loss(twins.here->forward(batch(group, step))).backward();
      mean_loss((*twins.there)->forward(batch(group, step))).backward();
      twins.expect_same(step);
    }
    ASSERT_EQ(kept.size(), 6U);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      EXPECT_TRUE(torch::equal(kept[i], copies[i])) << "is still what this rank computed: " << i;
    }
  });
}

TEST(Lending, WrongGuessesDoNoHarm) {
  on_ranks(3, [](Group& group) {
    Twins twins(group);
    const std::vector<std::vector<std::size_t>> orders = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {0, 2}, {1}, {0, 1, 0, 2}};
    std::vector<torch::Tensor> graphs;  // which hold on to what they saved
    for (int step = 0; step < 40; ++step) {
      // Ranks may take different ways. Long enough the same for it to be foretold, then another.
      const auto& order = orders[static_cast<std::size_t>(step / 4 + (step > 20 ? to_int(group.rank()) : 0)) % 6];
      twins.net->zero_grad();
      twins.other->zero_grad();
      // Tensors as large as the weights' gradients, among them.
      const auto extra = batch(group, step).repeat({kWide / 4, 1}).requires_grad_();
      const auto loss = [&](DataParallel<WideImpl>& model) {
        auto x = batch(group, step);
        return mean_loss(model->forward(step % 8 < 3 ? x : torch::cat({x, extra * 2}).square(), order));
      };
      auto first = loss(twins.here);
      first.backward({}, true);
      graphs.push_back(first);
      loss(*twins.there).backward();
      twins.expect_same(step);
    }
  });
}

TEST(Lending, AFailedBackwardIsForgotten) {
  on_ranks(2, [](Group& group) {
    Twins twins(group, {.first_bucket_bytes = std::size_t{1} << 30});  // nothing leaves before backward ends
    bool fails = false;
    twins.net->layers[0]->bias.register_hook([&](const torch::Tensor&) {
      if (fails) {
        throw std::runtime_error("out of luck");
      }
    });
    for (int step = 0; step < 8; ++step) {
      twins.net->zero_grad();
      twins.other->zero_grad();
      fails = step == 5;
      if (fails) {
        EXPECT_THROW(mean_loss(twins.here->forward(batch(group, step))).backward(), std::runtime_error);
        twins.net->zero_grad();
        fails = false;
      }
      mean_loss(twins.here->forward(batch(group, step))).backward();
      mean_loss((*twins.there)->forward(batch(group, step))).backward();
      twins.expect_same(step);
    }
  });
}

TEST(Lending, GradientsOfGradientsAreRight) {
  on_ranks(2, [](Group& group) {
    Twins twins(group);
    const auto penalty = [&](DataParallel<WideImpl>& model, int step) {
      const auto x = batch(group, step).requires_grad_();
      const auto y = mean_loss(model->forward(x));
      const auto slope = torch::autograd::grad({y}, {x}, {}, true, true)[0];
      return y + slope.square().sum();
    };
    for (int step = 0; step < 6; ++step) {
      twins.net->zero_grad();
      twins.other->zero_grad();
      penalty(twins.here, step).backward();
      penalty(*twins.there, step).backward();
      twins.expect_same(step);
    }
  });
}

TEST(Lending, AGradientMayBeComputedFromTheLastOne) {
  on_ranks(2, [](Group& group) {
    Twins twins(group);
    const auto loss = [&](DataParallel<WideImpl>& model, const torch::Tensor& last, int step) {
      auto& layers = model->layers;
      const auto scale = 0.1 / (last.norm().item<double>() + 1e-300);
      const auto x = torch::tanh(batch(group, step).mm(layers[0]->weight.mm(last) * scale));
      return mean_loss(layers[2](torch::tanh(layers[1](x))));
    };
    auto mine = drawn({kWide, kWide}, 5);
    auto theirs = mine.clone();
    for (int step = 0; step < 12; ++step) {
      twins.net->zero_grad();
      twins.other->zero_grad();
      loss(twins.here, mine, step).backward();
      loss(*twins.there, theirs, step).backward();
      twins.expect_same(step);
      mine = twins.net->layers[0]->weight.grad();
      theirs = twins.other->layers[0]->weight.grad();
    }
  });
}

struct MirroredImpl : torch::nn::Module {
  explicit MirroredImpl(std::int64_t size) {
    weight = register_parameter("weight", torch::complex(drawn({size, size}, 1), drawn({size, size}, 2)));
    last = register_parameter("last", drawn({size}, 3));  // arrives first, and shows that backward runs
  }
  torch::Tensor forward(const torch::Tensor& x) { return (torch::real(torch::conj(weight) * x).sum(0) * last).sum(); }
  torch::Tensor weight, last;
};
TORCH_MODULE(Mirrored);

TEST(Lending, ConjugatesStayConjugates) {
  for (const std::int64_t size : {9, 72}) {  // too small to be lent, and large enough
    for (const bool in_place : {true, false}) {
      on_ranks(2, [=](Group& group) {
        Mirrored net(size);
        DataParallel model(net, group, {.in_place = in_place});
        const auto x = [size](int rank) {
          return torch::complex(drawn({size, size}, 4 + rank), drawn({size, size}, 7 + rank));
        };
        for (int step = 0; step < 5; ++step) {
          net->zero_grad();
          model->forward(x(to_int(group.rank()))).backward();
          const auto expected = (x(0) + x(1)) / 2 * net->last.detach();
          EXPECT_TRUE(torch::allclose(net->weight.grad(), expected)) << size << " in step " << step;
        }
      });
    }
  }
}

TEST(Lending, MemoryStaysUntilItIsGivenBack) {
  auto memory = torch::full({100}, 7.0);
  auto* const data = memory.data_ptr();
  auto loan = gradient::lend(memory);
  EXPECT_TRUE(gradient::is_lent(memory));
  EXPECT_EQ(loan.get(), data);
  memory.reset();
  EXPECT_EQ(static_cast<float*>(loan.get())[99], 7.0F);
  loan.clear();
}

}  // namespace
}  // namespace tutti
