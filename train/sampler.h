#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "train/gpt.h"

namespace tutti::train {

/// A text as the model takes it, [1, length].
torch::Tensor tokens_of(std::string_view text);

struct SampleOptions {
  std::int64_t length = 200;  ///< bytes, beside the prompt's
  double temperature = 0.8;   ///< 0: always the likeliest byte
  std::int64_t top_k = 0;     ///< one of so many likeliest; 0: of all
  std::uint64_t seed = 1;
};

/// Writes on where the prompt ends, byte by byte; the model sees as much of the end as its context holds. An empty
/// prompt begins a document. `each` gets every byte as it comes. The bytes without the prompt.
std::string sample(Gpt& model, std::string_view prompt, const SampleOptions& options,
                   const std::function<void(char)>& each = nullptr);

}  // namespace tutti::train
