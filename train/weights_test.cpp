#include "train/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/gpt.h"
#include "train/safetensors.h"
#include "train/test_folder.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;

constexpr ModelSize kSmall{.layers = 1, .heads = 2, .width = 6, .context = 5};

NamedTensors named(const Gpt& model) {
  NamedTensors tensors;
  for (const auto& item : model->named_parameters()) {
    tensors.emplace_back(item.key(), item.value());
  }
  return tensors;
}

bool equal(const Gpt& a, const Gpt& b) {
  for (const auto& item : a->named_parameters()) {
    if (!item.value().equal(b->named_parameters()[item.key()])) {
      return false;
    }
  }
  return true;
}

/// The model's tensors as blocks, each changed by `change`; what it returns false for is left out.
void write(const TestFolder& folder, const Gpt& model, const std::function<bool(std::string&, at::Tensor&)>& change) {
  std::vector<at::Tensor> kept;
  std::vector<Block> blocks;
  for (auto [name, parameter] : named(model)) {
    auto tensor = parameter.detach().contiguous();
    if (change(name, tensor)) {
      kept.push_back(tensor.contiguous());
      const auto dtype = tensor.scalar_type() == at::kFloat      ? Dtype::f32
                         : tensor.scalar_type() == at::kBFloat16 ? Dtype::bf16
                         : tensor.scalar_type() == at::kHalf     ? Dtype::f16
                                                                 : Dtype::f64;
      blocks.push_back({.name = name,
                        .dtype = dtype,
                        .shape = tensor.sizes().vec(),
                        .bytes = {static_cast<std::byte*>(kept.back().data_ptr()), kept.back().nbytes()}});
    }
  }
  ASSERT_TRUE(write_safetensors(folder / "model.safetensors", blocks).ok());
}

std::string why(const TestFolder& folder) {
  const Gpt model(kSmall, 2);
  const auto loaded = load_weights(folder.path(), named(model));
  return loaded ? "no error" : loaded.error().message;
}

TEST(Weights, AreTheSameWhenTheyComeBack) {
  const TestFolder folder;
  const Gpt saved(kSmall, 1);
  const Gpt loaded(kSmall, 2);
  ASSERT_TRUE(save_weights(folder.path(), named(saved)).ok());
  EXPECT_FALSE(equal(saved, loaded));
  ASSERT_TRUE(load_weights(folder.path(), named(loaded)).ok());
  EXPECT_TRUE(equal(saved, loaded));
  EXPECT_EQ(Safetensors::open(folder / "model.safetensors").value().metadata(), (Metadata{{"format", "pt"}}));
}

TEST(Weights, LoadWithoutTheirPrefix) {
  const TestFolder folder;
  const Gpt saved(kSmall, 1);
  write(folder, saved, [](std::string& name, at::Tensor&) {
    name = name.substr(std::string("transformer.").size());
    return true;
  });
  const Gpt loaded(kSmall, 2);
  const auto status = load_weights(folder.path(), named(loaded));
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_TRUE(equal(saved, loaded));
}

TEST(Weights, LoadFromHalfAsManyBits) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const TestFolder folder;
    const Gpt saved(kSmall, 1);
    write(folder, saved, [&](std::string&, at::Tensor& tensor) {
      tensor = tensor.to(type);
      return true;
    });
    const Gpt loaded(kSmall, 2);
    ASSERT_TRUE(load_weights(folder.path(), named(loaded)).ok());
    for (const auto& item : saved->named_parameters()) {
      EXPECT_TRUE(item.value().to(type).to(at::kFloat).equal(loaded->named_parameters()[item.key()])) << item.key();
    }
  }
}

TEST(Weights, ThatAreMissingOrOfAnotherShapeAreNamed) {
  const TestFolder folder;
  EXPECT_THAT(why(folder), HasSubstr("model.safetensors"));
  const Gpt model(kSmall, 1);
  write(folder, model, [](std::string& name, at::Tensor&) { return name != "transformer.h.0.ln_2.bias"; });
  EXPECT_THAT(why(folder), HasSubstr("model.safetensors: has no transformer.h.0.ln_2.bias"));
  write(folder, model, [](std::string& name, at::Tensor& tensor) {
    if (name == "transformer.wpe.weight") {
      tensor = tensor.slice(0, 0, 3);
    }
    return true;
  });
  EXPECT_THAT(why(folder), HasSubstr("transformer.wpe.weight is [3, 6], and [5, 6] in this model"));
  write(folder, model, [](std::string&, at::Tensor& tensor) {
    tensor = tensor.to(at::kDouble);
    return true;
  });
  EXPECT_THAT(why(folder), HasSubstr("is F64, and can be F32, BF16 or F16"));
  write(folder, Gpt(ModelSize{.layers = 2, .heads = 2, .width = 6, .context = 5}, 1),
        [](std::string&, at::Tensor&) { return true; });
  EXPECT_THAT(why(folder), HasSubstr("transformer.h.1."));
  EXPECT_THAT(why(folder), HasSubstr("has no place in this model"));
}

}  // namespace
}  // namespace tutti::train
