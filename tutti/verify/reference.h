#pragma once

#include <vector>

#include "tutti/verify/roster.h"
#include "tutti/verify/trainee.h"

namespace tutti::verifying {

/// What one process computes, with the weights of what is verified.
class Reference {
 public:
  struct Result {
    double loss = 0;
    std::vector<at::Tensor> gradients;  ///< by parameter of the module, as doubles; undefined where there is none
  };

  /// Both modules have the same parameters and buffers.
  Reference(Trainee alone, const torch::nn::Module& verified);

  /// The gradient of the mean loss of some rows, with the weights and buffers that the other module has now.
  Result compute(const Rows& rows);

 private:
  const Trainee alone_;
  const std::vector<NamedTensor> own_;  // parameters and buffers
  const std::vector<NamedTensor> theirs_;
};

/// Of a module's parameters, as they are; undefined where there is none.
std::vector<at::Tensor> gradients_of(const torch::nn::Module& module);

}  // namespace tutti::verifying
