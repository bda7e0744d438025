#include <algorithm>
#include <cstdlib>
#include <numeric>

#include <fmt/format.h>

#include "train/config.h"
#include "tutti/base/mesh_layout.h"

namespace tutti::train {
namespace {

constexpr std::int64_t kUsualBatch = 2048;  // tokens
constexpr std::int64_t kReproduciblePasses = 8;

Error bad(std::string sentence) { return {Code::invalid_argument, std::move(sentence)}; }

/// "4 or 8": the numbers that divide `width` next to one that does not.
std::string divisors_near(std::int64_t width, std::int64_t heads) {
  auto below = std::min(heads, width);
  while (width % below != 0) {
    --below;
  }
  auto above = heads;
  while (above < width && width % above != 0) {
    ++above;
  }
  return above > width || above == below ? fmt::format("{}", below) : fmt::format("{} or {}", below, above);
}

Status check_model(const ModelSize& size) {
  if (size.width % size.heads != 0) {
    return bad(fmt::format("heads is {}, which does not divide the width of {}: {} would", size.heads, size.width,
                           divisors_near(size.width, size.heads)));
  }
  return {};
}

Status check_mesh(const std::string& text, int ranks) {
  const auto mesh = MeshLayout::parse(text, ranks);
  if (!mesh) {
    return mesh.error();
  }
  const auto& axes = mesh.value().axes();
  const auto other = std::find_if(axes.begin(), axes.end(), [](const Axis& axis) { return axis.name != "dp"; });
  if (other != axes.end()) {
    return Error{Code::unsupported,
                 fmt::format("mesh {}: ranks can be arranged along dp (data parallel) alone so far, not along {}", text,
                             other->name)};
  }
  return {};
}

/// Samples of equal length, equally many in every pass.
Status settle_batch(Config& config, std::int64_t context, int ranks) {
  std::int64_t unit = 0;
  if (__builtin_mul_overflow(context, passes(config, ranks), &unit)) {
    return bad("context, accumulation and ranks make a batch of more tokens than can be counted");
  }
  if (!config.batch_tokens) {
    config.batch_tokens = std::max<std::int64_t>(1, (kUsualBatch + unit - 1) / unit) * unit;
  }
  const auto tokens = *config.batch_tokens;
  if (tokens % unit == 0) {
    return {};
  }
  const auto below = tokens / unit * unit;
  const auto who =
      config.reproducible ? fmt::format("{} reproducible passes", kReproduciblePasses) : fmt::format("ranks {}", ranks);
  return bad(fmt::format(
      "batch_tokens is {}, which is no multiple of {} = context {} x {} x accumulation {}: {}{} "
      "would fit",
      tokens, unit, context, who, config.accumulation, below > 0 ? fmt::format("{} or ", below) : "", below + unit));
}

Status check_passes(const Config& config, int ranks) {
  if (passes(config, ranks) >= ranks) {
    return {};
  }
  return bad(fmt::format(
      "a reproducible step has {} passes (8 x accumulation {}), which is not one for each of {} ranks: accumulation {} "
      "would do",
      passes(config, ranks), config.accumulation, ranks, (ranks + kReproduciblePasses - 1) / kReproduciblePasses));
}

Status settle_schedule(Config& config) {
  if (!config.warmup_steps) {
    config.warmup_steps = config.steps / 10;
  }
  if (!config.learning_rate) {
    config.learning_rate = find_preset(config.preset)->learning_rate;
  }
  if (!config.minimum_rate) {
    config.minimum_rate = *config.learning_rate / 10;
  }
  if (*config.warmup_steps > config.steps) {
    return bad(fmt::format("warmup_steps is {}, and there are only {} steps", *config.warmup_steps, config.steps));
  }
  if (*config.minimum_rate > *config.learning_rate) {
    return bad(fmt::format("minimum_rate is {}, which is above the learning_rate of {}", *config.minimum_rate,
                           *config.learning_rate));
  }
  return {};
}

}  // namespace

std::int64_t passes(const Config& config, int ranks) {
  return config.accumulation * (config.reproducible ? kReproduciblePasses : ranks);
}

Result<Config> settle(Config config, int ranks) {
  require(ranks >= 1, "somebody trains");
  const auto size = model_size(config);
  for (const auto& status : {check_model(size), check_mesh(config.mesh, ranks), check_passes(config, ranks),
                             settle_batch(config, size.context, ranks), settle_schedule(config)}) {
    if (!status) {
      return status.error();
    }
  }
  config.layers = size.layers;
  config.heads = size.heads;
  config.width = size.width;
  config.context = size.context;
  if (!config.out) {
    config.out = "runs/" + config.name;
  }
  return config;
}

}  // namespace tutti::train
