// What `tutti train` starts as every rank, and `tutti generate` becomes. Both check what the user typed; here it is
// taken as it comes.
//
//   tutti-train train FOLDER plain|live|json new|resume
//   tutti-train generate FOLDER PROMPT LENGTH TEMPERATURE TOP_K SEED

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "train/interrupt.h"
#include "train/job.h"
#include "train/model_config.h"
#include "train/printable.h"
#include "train/sampler.h"
#include "train/weights.h"

namespace {

using Arguments = std::vector<std::string>;
using namespace tutti::train;

int train_mode(const Arguments& arguments) {
  const Interrupt held_back;
  const auto& shown = arguments[2];
  const auto world = tutti::init();
  return train(world, {.folder = arguments[1],
                       .resume = arguments[3] == "resume",
                       .display = shown == "live"   ? Display::live
                                  : shown == "json" ? Display::json
                                                    : Display::plain});
}

int generate_mode(const Arguments& arguments) {
  const auto& folder = arguments[1];
  Gpt model(tutti::value_or_throw(read_model_config(folder)), 0);
  NamedTensors tensors;
  for (const auto& item : model->named_parameters()) {
    tensors.emplace_back(item.key(), item.value());
  }
  tutti::throw_if_failed(load_weights(folder, tensors));
  const auto& prompt = arguments[2];
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  std::fputs(prompt.c_str(), stdout);
  const auto text = sample(model, prompt,
                           {.length = std::atoll(arguments[3].c_str()),
                            .temperature = std::atof(arguments[4].c_str()),
                            .top_k = std::atoll(arguments[5].c_str()),
                            .seed = std::strtoull(arguments[6].c_str(), nullptr, 10)});
  const auto shown = terminal ? printable(text) + "\n" : text;
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** values) {
  const Arguments arguments(values + 1, values + count);
  try {
    if (arguments.size() == 4 && arguments[0] == "train") {
      return train_mode(arguments);
    }
    if (arguments.size() == 7 && arguments[0] == "generate") {
      return generate_mode(arguments);
    }
    std::fputs("this is a part of `tutti train` and `tutti generate`: call those\n", stderr);
    return 2;
  } catch (const tutti::Exception& error) {
    std::fprintf(stderr, "tutti %s: %s\n", arguments[0].c_str(), error.error().message.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tutti %s: %s\n", arguments[0].c_str(), error.what());
  }
  return 1;
}
