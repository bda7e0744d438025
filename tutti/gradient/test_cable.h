#pragma once
// A model on a slow cable, for tests of StepAhead.

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tutti/gradient/data_parallel.h"
#include "tutti/gradient/hook.h"
#include "tutti/gradient/test_models.h"

namespace tutti {

/// A cable on which each bucket takes some milliseconds. It knows in which order they came back, and may break.
class SlowCable final : public Hook {
 public:
  Work reduce(const FullBucket& bucket, const Group& group) override {
    ++sent;
    return then(all_reduce(bucket.gradients, bucket.reduce, group), [this, index = bucket.index] {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (broken) {
        throw std::runtime_error("the cable is cut");
      }
      back.push_back(index);
    });
  }

  std::size_t sent = 0;
  std::vector<std::size_t> back;
  bool broken = false;
};

struct DeepImpl : torch::nn::Module {
  explicit DeepImpl(int layers) {
    for (int i = 0; i < layers; ++i) {
      all.push_back(register_module("layer" + std::to_string(i), torch::nn::Linear(5, 5)));
    }
    set_parameters(*this, 1);
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto& layer : all) {
      x = torch::tanh(layer(x));
    }
    return x;
  }

  std::vector<torch::nn::Linear> all;
};
TORCH_MODULE(Deep);

inline torch::Tensor batch(Rank rank, int step) { return rows(to_int(rank) * 3 + step, to_int(rank) * 3 + step + 3); }

/// The same model twice, with a bucket for each layer: once ahead, once as usual.
struct Pair {
  explicit Pair(Group& group, DataParallelOptions options = {})
      : ahead_model(ahead_net, group, with(options, cable)), usual_model(usual_net, group, with(options, nullptr)) {}

  static DataParallelOptions with(DataParallelOptions options, std::shared_ptr<Hook> hook) {
    options.bucket_bytes = options.first_bucket_bytes = 200;
    options.hook = std::move(hook);
    return options;
  }

  void backward(Rank rank, int step) {
    mean_loss(ahead_model->forward(batch(rank, step))).backward();
    mean_loss(usual_model->forward(batch(rank, step))).backward();
  }

  void expect_same() const {
    for (const auto& item : usual_net->named_parameters()) {
      EXPECT_TRUE(torch::equal(ahead_net->named_parameters()[item.key()], item.value())) << item.key();
    }
  }

  std::shared_ptr<SlowCable> cable = std::make_shared<SlowCable>();
  Deep ahead_net{6};
  Deep usual_net{6};
  DataParallel<DeepImpl> ahead_model;
  DataParallel<DeepImpl> usual_model;
};

}  // namespace tutti
