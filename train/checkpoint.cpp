#include "train/checkpoint.h"

#include <exception>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <torch/serialize/archive.h>

#include "train/model_config.h"
#include "train/position_file.h"
#include "train/saving.h"
#include "tutti/base/whole_file.h"

namespace tutti::train {
namespace {

constexpr const char* kOptimizer = "optimizer.pt";

std::string state_of(torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream stream;
  archive.save_to(stream);
  return std::move(stream).str();
}

Status write_all(const std::string& folder, const Checkpoint& checkpoint) {
  if (auto saved = save_weights(folder, checkpoint.weights); !saved) {
    return saved;
  }
  const auto write = [&](const char* name, const std::string& text) { return write_whole(folder + "/" + name, text); };
  for (const auto& written :
       {write("config.json", model_config_text(checkpoint.size)), write(kOptimizer, state_of(checkpoint.optimizer)),
        write_config(folder + "/train.json", checkpoint.config),
        write("position.json", position_text(checkpoint.position))}) {
    if (!written) {
      return written;
    }
  }
  return {};
}

}  // namespace

Status save_checkpoint(const std::string& folder, const Checkpoint& checkpoint) {
  const auto fresh = saving_folder(folder);
  std::error_code error;
  std::filesystem::remove_all(fresh, error);
  auto written = write_all(fresh, checkpoint);
  if (!written) {
    std::filesystem::remove_all(fresh, error);
    return written;
  }
  return take_places(folder);
}

Status load_optimizer(const std::string& folder, torch::optim::Optimizer& optimizer) {
  const auto path = folder + "/" + kOptimizer;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return Error{Code::not_found, fmt::format("{}: is not there, so that this run cannot go on; --weights {} begins a "
                                              "new one with its weights",
                                              path, folder)};
  }
  try {
    torch::serialize::InputArchive archive;
    archive.load_from(path);
    optimizer.load(archive);
  } catch (const std::exception&) {
    return Error{Code::invalid_argument,
                 fmt::format("{}: is damaged, or the state of another optimizer or model than this one", path)};
  }
  return {};
}

}  // namespace tutti::train
