#include "train/sampler.h"

#include <algorithm>

#include "tutti/comm/exception.h"

namespace tutti::train {
namespace {

char draw(torch::Tensor logits, const SampleOptions& options, at::Generator& generator) {
  if (options.temperature <= 0) {
    return static_cast<char>(logits.argmax().item<std::int64_t>());
  }
  logits = logits / options.temperature;
  if (options.top_k > 0 && options.top_k < logits.size(0)) {
    const auto least = std::get<0>(logits.topk(options.top_k))[-1];
    logits = logits.masked_fill(logits < least, -std::numeric_limits<double>::infinity());
  }
  return static_cast<char>(torch::multinomial(logits.softmax(0), 1, false, generator).item<std::int64_t>());
}

}  // namespace

torch::Tensor tokens_of(std::string_view text) {
  const auto tokens = torch::empty({1, static_cast<std::int64_t>(text.size())}, torch::kLong);
  std::transform(text.begin(), text.end(), tokens.data_ptr<std::int64_t>(),
                 [](char letter) { return static_cast<unsigned char>(letter); });
  return tokens;
}

std::string sample(Gpt& model, std::string_view prompt, const SampleOptions& options,
                   const std::function<void(char)>& each) {
  const torch::NoGradGuard no_grad;
  auto generator = at::detail::createCPUGenerator(options.seed);
  std::string text = prompt.empty() ? std::string(1, '\0') : std::string(prompt);
  const auto before = text.size();
  const auto context = static_cast<std::size_t>(model->size().context);
  for (std::int64_t i = 0; i < options.length; ++i) {
    const auto seen = std::string_view(text).substr(text.size() - std::min(text.size(), context));
    const auto logits = model->forward(tokens_of(seen))[0][-1].to(torch::kDouble);
    if (!logits.isfinite().all().item<bool>()) {
      throw Exception({Code::invalid_argument, "what the model computes is not a number: its weights are of no use"});
    }
    text += draw(logits, options, generator);
    if (each) {
      each(text.back());
    }
  }
  return text.substr(before);
}

}  // namespace tutti::train
