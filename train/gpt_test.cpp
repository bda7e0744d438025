#include "train/gpt.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::train {
namespace {

constexpr ModelSize kSize{.layers = 2, .heads = 3, .width = 12, .context = 7};

torch::Tensor some_text(std::int64_t texts, std::int64_t length) {
  return torch::arange(texts * length).mul(37).remainder(kVocabulary).view({texts, length});
}

TEST(Gpt, HasAsManyParametersAsItsSizeSays) {
  for (const auto& size : {kSize, find_preset("nano")->size, find_preset("micro")->size}) {
    const Gpt model(size, 1);
    std::int64_t count = 0;
    for (const auto& parameter : model->parameters()) {
      count += parameter.numel();
    }
    EXPECT_EQ(count, size.parameters());
  }
}

TEST(Gpt, NamesThemAsGpt2Does) {
  std::set<std::string> names;
  for (const auto& item : Gpt(kSize, 1)->named_parameters()) {
    names.insert(item.key());
  }
  std::set<std::string> expected{"transformer.wte.weight", "transformer.wpe.weight", "transformer.ln_f.weight",
                                 "transformer.ln_f.bias"};
  for (const auto* layer : {"0", "1"}) {
    for (const auto* part : {"ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"}) {
      for (const auto* kind : {"weight", "bias"}) {
        expected.insert(std::string("transformer.h.") + layer + "." + part + "." + kind);
      }
    }
  }
  EXPECT_EQ(names, expected);
}

TEST(Gpt, IsDrawnFromTheSeedAlone) {
  const auto weights = [](std::uint64_t seed) { return Gpt(kSize, seed)->parameters()[0]; };
  torch::manual_seed(1);
  const auto first = weights(5);
  torch::manual_seed(2);
  EXPECT_TRUE(weights(5).equal(first));
  EXPECT_FALSE(weights(6).equal(first));
}

TEST(Gpt, WhatComesLaterChangesNothingBefore) {
  Gpt model(kSize, 1);
  auto text = some_text(2, 7);
  const auto before = model->forward(text);
  text.slice(1, 4).add_(1).remainder_(kVocabulary);
  const auto after = model->forward(text);
  EXPECT_TRUE(after.slice(1, 0, 4).equal(before.slice(1, 0, 4)));
  EXPECT_FALSE(after.slice(1, 4).equal(before.slice(1, 4)));
  EXPECT_EQ(after.sizes(), torch::IntArrayRef({2, 7, kVocabulary}));
}

TEST(Gpt, StartsAsUnsureAsCanBe) {
  Gpt model(kSize, 1);
  const auto text = some_text(5, 7);
  EXPECT_NEAR(model->loss(text, text.roll(1)).item<double>(), std::log(256.0), 0.1);
}

TEST(Gpt, GradientsAreThoseOfDifferences) {
  Gpt model(kSize, 3);
  model->to(torch::kDouble);
  const auto text = some_text(2, 8);
  const auto loss = [&] { return model->loss(text.slice(1, 0, 7), text.slice(1, 1)); };
  loss().backward();
  constexpr double kStep = 1e-5;
  for (const auto& item : model->named_parameters()) {
    const torch::NoGradGuard no_grad;
    auto element = item.value().view(-1)[item.value().numel() / 3];
    const auto gradient = item.value().grad().view(-1)[item.value().numel() / 3].item<double>();
    element.add_(kStep);
    const auto above = loss().item<double>();
    element.sub_(2 * kStep);
    const auto below = loss().item<double>();
    element.add_(kStep);
    EXPECT_NEAR((above - below) / (2 * kStep), gradient, 1e-8) << item.key();
  }
}

}  // namespace
}  // namespace tutti::train
