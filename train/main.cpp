// What `tutti train` starts as every rank, and `tutti generate` becomes. Both check what the user typed; here it is
// taken as it comes.
//
//   tutti-train train FOLDER plain|live|json new|resume
//   tutti-train generate FOLDER PROMPT LENGTH TEMPERATURE TOP_K SEED
//   tutti-train logits FOLDER    those of standard input, as float32, for comparing

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "train/failure.h"
#include "train/files.h"
#include "train/interrupt.h"
#include "train/job.h"
#include "train/model_config.h"
#include "train/printable.h"
#include "train/sampler.h"
#include "train/weights.h"

namespace {

using Arguments = std::vector<std::string>;
using namespace tutti::train;

int complain(const std::string& command, const std::string& sentence) {
  std::fprintf(stderr, "tutti %s: %s\n", command.c_str(), sentence.c_str());
  return 1;
}

int train_mode(const Arguments& arguments) {
  const Interrupt held_back;
  const auto& shown = arguments[2];
  const auto world = tutti::init();
  try {
    return train(world, {.folder = arguments[1],
                         .resume = arguments[3] == "resume",
                         .display = shown == "live"   ? Display::live
                                    : shown == "json" ? Display::json
                                                      : Display::plain});
  } catch (...) {
    const auto sentence = failure_to_say(world, caught_error());
    return sentence ? complain("train", *sentence) : 1;
  }
}

Gpt load_model(const std::string& folder) {
  Gpt model(tutti::value_or_throw(read_model_config(folder)), 0);
  NamedTensors tensors;
  for (const auto& item : model->named_parameters()) {
    tensors.emplace_back(item.key(), item.value());
  }
  tutti::throw_if_failed(load_weights(folder, tensors));
  return model;
}

int write(std::string_view bytes) {
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  if (std::fflush(stdout) == 0) {
    return 0;
  }
  std::fputs("tutti generate: cannot write to standard output\n", stderr);
  return 1;
}

/// Every byte as it comes; on a terminal whole letters, which may have several.
int generate_mode(const Arguments& arguments) {
  auto model = load_model(arguments[1]);
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  std::string waiting;
  int code = 0;
  const auto show = [&](std::string_view text) {
    waiting += text;
    const auto ready = terminal ? waiting.size() - unfinished_bytes(waiting) : waiting.size();
    if (code == 0 && ready > 0) {
      code = write(terminal ? printable(waiting.substr(0, ready)) : waiting);
    }
    waiting.erase(0, ready);
  };
  show(arguments[2]);
  (void)sample(model, arguments[2],
               {.length = std::atoll(arguments[3].c_str()),
                .temperature = std::atof(arguments[4].c_str()),
                .top_k = std::atoll(arguments[5].c_str()),
                .seed = std::strtoull(arguments[6].c_str(), nullptr, 10)},
               [&](char byte) {
                 show({&byte, 1});
               });
  if (terminal) {
    show("\n");
  }
  return code;
}

int logits_mode(const Arguments& arguments) {
  auto model = load_model(arguments[1]);
  const auto text = tutti::value_or_throw(read_to_end(STDIN_FILENO, "standard input"));
  const torch::NoGradGuard no_grad;
  const auto logits = model->forward(tokens_of(text)).contiguous();
  return write({static_cast<const char*>(logits.data_ptr()), logits.nbytes()});
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
    if (arguments.size() == 2 && arguments[0] == "logits") {
      return logits_mode(arguments);
    }
    std::fputs("this is a part of `tutti train` and `tutti generate`: call those\n", stderr);
    return 2;
  } catch (...) {
    return complain(arguments[0], caught_error().message);
  }
}
