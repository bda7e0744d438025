#pragma once

#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "tutti/base/error.h"

namespace tutti::train {

/// A model's tensors by the names that GPT-2 gives them; the tensors are the model's own.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Writes FOLDER/model.safetensors as `transformers` does: the output layer, which is the input's, is not in it.
/// See write_safetensors for what a failure leaves. Blocks.
Status save_weights(const std::string& folder, const NamedTensors& tensors);

/// Puts what FOLDER/model.safetensors has into the tensors, from float32, bfloat16 or float16. Names there may lack
/// their `transformer.`; what GPT-2's files have beside weights is passed over. An error names the tensor that is
/// missing, is of another shape, or has no place in the model; then some may have been loaded. Blocks.
Status load_weights(const std::string& folder, const NamedTensors& tensors);

}  // namespace tutti::train
