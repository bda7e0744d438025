#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/beside.h"
#include "cli/parse.h"
#include "cli/train_command.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGenerateExamples =
    "Examples:\n"
    "  tutti generate --prompt '/// ' --length 500\n"
    "  tutti generate runs/larger --temperature 0.5 --top-k 20 --seed 3";

/// The run that ended last.
std::string newest_run() {
  std::string newest;
  fs::file_time_type when;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("runs", error)) {
    const auto time = fs::last_write_time(entry.path() / "model.safetensors", error);
    if (!error && (newest.empty() || time > when)) {
      newest = entry.path().string();
      when = time;
    }
  }
  return newest;
}

}  // namespace

int generate_command(const std::vector<std::string>& arguments) {
  constexpr const char* kName = "tutti generate";
  constexpr double kColdest = 1e-3;
  // The parser takes what is too large for the largest number that there is.
  constexpr auto kLargestSeed = std::numeric_limits<std::int64_t>::max() - 1;
  CLI::App app("Write on where a prompt ends: tutti generate [DIR] [OPTIONS]", kName);
  std::string folder;
  std::string prompt = "The ";
  std::int64_t length = 500;
  double temperature = 0.8;
  std::int64_t top_k = 0;
  std::int64_t seed = 1;
  app.add_option("dir", folder, "Folder with model.safetensors and config.json (the newest one in runs/)");
  app.add_option("--prompt", prompt, "What the text begins with (The )");
  app.add_option("--length", length, "Bytes to write (500)")->check(CLI::Range(0, 1'000'000'000));
  app.add_option("--temperature", temperature, "How much chance there is: 0 none, 1 as learned (0.8)")
      ->check(CLI::Range(0.0, 100.0));
  app.add_option("--top-k", top_k, "Only the so many likeliest bytes (0: all)")->check(CLI::Range(0, 256));
  app.add_option("--seed", seed, "What chance is drawn from (1)")->check(CLI::Range(std::int64_t{0}, kLargestSeed));
  app.footer(kGenerateExamples);
  if (const int end = parse(app, kName, arguments); end >= 0) {
    return end;
  }
  if (!std::isfinite(temperature) || (temperature > 0 && temperature < kColdest)) {
    return complain(kName, fmt::format("--temperature is 0, or from {} to 100", kColdest));
  }
  if (folder.empty() && (folder = newest_run()).empty()) {
    return complain(kName,
                    "there is no run in runs/; name a folder with model.safetensors, or let tutti train make one");
  }
  const auto program = find_beside("tutti-train");
  if (!program) {
    return complain(kName, program.error().message);
  }
  // Threads that wait busily for one without a core: sixty times slower on a machine that has more to do, 15 to 46 %
  // faster on one that has not (small, nano).
  ::setenv("OMP_WAIT_POLICY", "PASSIVE", 0);
  return become(kName, {program.value(), "generate", folder, prompt, std::to_string(length),
                        fmt::format("{}", temperature), std::to_string(top_k), std::to_string(seed)});
}

}  // namespace tutti::cli
