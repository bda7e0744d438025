#include "cli/train_setup.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "cli/build_info.h"
#include "cli/system_facts.h"
#include "train/batches.h"
#include "train/corpus.h"
#include "train/files.h"
#include "train/memory_need.h"
#include "train/model_config.h"
#include "train/position_file.h"
#include "train/saving.h"
#include "tutti/base/mesh_layout.h"
#include "tutti/base/whole_file.h"
#include "tutti/plan/topology.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;
using train::Config;

constexpr int kMostUnasked = 16;
constexpr int kMostInMesh = 1024;

Error bad(std::string sentence) { return {Code::invalid_argument, std::move(sentence)}; }

bool is_standard_input(const std::string& path) { return path == "-"; }

bool has_run(const std::string& folder) {
  std::error_code error;
  return fs::exists(folder + "/train.json", error);
}

Result<int> count_cores() {
  const auto topology = plan::read_topology();
  if (!topology) {
    return topology.error();
  }
  return usable_cores(topology.value());
}

/// Paths that are found again when the training goes on from elsewhere.
void make_absolute(std::vector<std::string>& paths) {
  for (auto& path : paths) {
    std::error_code error;
    const auto absolute = is_standard_input(path) ? fs::path(path) : fs::absolute(path, error);
    path = error ? path : absolute.lexically_normal().string();
  }
}

/// The folder to write to, chosen when nobody named it.
void choose_folder(const train::Flags& flags, TrainSetup& setup) {
  auto& config = setup.config;
  if (flags.resume) {
    if (!flags.out_named) {
      config.out = fs::path(flags.file).parent_path().string();
    }
  } else if (!flags.out_named) {
    config.out = new_folder(config.name);
    if (const auto usual = "runs/" + config.name; *config.out != usual) {
      setup.notes.push_back(fmt::format("{} has a run in it; this one goes to {}", usual, *config.out));
    }
  }
  if (config.out->empty()) {
    config.out = std::string(1, '.');
  }
}

/// The model's size is that of the weights to begin with, where nobody said another.
Status take_size(Config& config) {
  if (!config.weights) {
    return {};
  }
  const auto size = train::read_model_config(*config.weights);
  if (!size) {
    return size.error();
  }
  for (const auto& [member, value] :
       {std::pair(&Config::layers, size.value().layers), std::pair(&Config::heads, size.value().heads),
        std::pair(&Config::width, size.value().width), std::pair(&Config::context, size.value().context)}) {
    config.*member = (config.*member).value_or(value);
  }
  if (const auto wanted = train::model_size(config); wanted != size.value()) {
    return bad(
        fmt::format("{}: those weights are of a model of {} layers, {} heads, width {} and context {}, not {}, "
                    "{}, {} and {}",
                    *config.weights, size.value().layers, size.value().heads, size.value().width, size.value().context,
                    wanted.layers, wanted.heads, wanted.width, wanted.context));
  }
  return {};
}

/// Whether what the folder holds can be gone on from.
Status check_resume(const Config& config, const train::Corpus& corpus) {
  const auto& folder = *config.out;
  if (auto finished = train::finish_saving(folder); !finished) {
    return finished;
  }
  const auto from = train::read_position(folder);
  if (!from) {
    return Error{from.error().code,
                 fmt::format("there is nothing to go on from in {}: {}", folder, from.error().message)};
  }
  if (from.value().step >= config.steps) {
    return bad(fmt::format("the run in {} has made all of its {} steps; --steps with a larger number goes on", folder,
                           config.steps));
  }
  const auto size = train::read_model_config(folder);
  if (!size) {
    return size.error();
  }
  if (size.value() != train::model_size(config)) {
    return bad(fmt::format("the run in {} has a model of another size: go on without changing it", folder));
  }
  const auto pieces = train::split(corpus.size(), config.evaluation_share).training;
  const auto batches =
      train::Batches::make(train::Windows(pieces, *config.context), {.batch = 1, .from = from.value()});
  return batches ? Status() : Status(batches.error());
}

/// Reads it once, here; ranks find it in the folder, and so does who goes on later.
Status keep_input(Config& config, const std::string& input) {
  const auto path = fs::absolute(*config.out + "/input.txt").lexically_normal().string();
  if (auto written = write_whole(path, input); !written) {
    return written;
  }
  std::replace_if(config.data.begin(), config.data.end(), is_standard_input, path);
  return {};
}

/// One training at a time writes there. The lock goes with this process.
Status lock_folder(const std::string& folder, TrainSetup& setup) {
  setup.lock = FileDescriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!setup.lock.valid()) {
    return Error{Code::system, fmt::format("{}: cannot open: {}", folder, std::strerror(errno))};
  }
  if (::flock(setup.lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return bad(fmt::format("{}: another training writes there now; --out or --name gives this one its own", folder));
  }
  return {};
}

/// Ranks open data again: what is gone once it was read is of no use to them.
Status check_files(const Config& config) {
  for (const auto& path : config.data) {
    std::error_code error;
    if (fs::is_fifo(path, error)) {
      return bad(fmt::format("{}: is a pipe; give what it holds on standard input, with --data -", path));
    }
  }
  return {};
}

/// Data, before anything is written.
Status check_data(const Config& config, bool resume, const std::optional<std::string>& input) {
  if (auto good = check_files(config); !good) {
    return good;
  }
  const auto corpus = train::Corpus::open(config.data, input);
  if (!corpus) {
    return corpus.error();
  }
  if (auto fits = corpus.value().check(*config.context, config.evaluation_share); !fits) {
    return fits;
  }
  return resume ? check_resume(config, corpus.value()) : Status();
}

Result<std::optional<std::string>> read_input(const Config& config) {
  if (std::none_of(config.data.begin(), config.data.end(), is_standard_input)) {
    return std::optional<std::string>();
  }
  auto text = train::read_to_end(STDIN_FILENO, "standard input");
  if (!text) {
    return text.error();
  }
  if (text.value().empty()) {
    return bad("standard input: is empty");
  }
  return std::optional(std::move(text).value());
}

/// All that needs no folder.
Status settle_setup(const train::Flags& flags, TrainSetup& setup) {
  auto& config = setup.config;
  if (config.data.empty()) {
    auto text = own_text();
    if (!text) {
      return text.error();
    }
    config.data = std::move(text).value();
  }
  make_absolute(config.data);
  if (auto taken = take_size(config); !taken) {
    return taken;
  }
  const auto cores = count_cores();
  if (!cores) {
    return cores.error();
  }
  setup.ranks = config.ranks ? *config.ranks : choose_ranks(config, cores.value());
  choose_folder(flags, setup);
  auto settled = train::settle(config, setup.ranks);
  if (!settled) {
    return settled.error();
  }
  config = std::move(settled).value();
  const auto too_large = train::why_it_cannot_fit(config, setup.ranks, memory_for_ranks());
  return too_large ? Status(Error{Code::resource_exhausted, *too_large}) : Status();
}

}  // namespace

Result<std::vector<std::string>> own_text() {
  std::error_code error;
  const auto tool = fs::read_symlink("/proc/self/exe", error);
  for (const auto& root : {tool.parent_path().parent_path(), fs::path(kSourceFolder)}) {
    if (fs::exists(root / "tutti" / "tutti.h", error) && fs::exists(root / "docs", error)) {
      std::vector<std::string> folders;
      for (const auto* name : {"tutti", "cli", "train", "examples", "docs"}) {
        folders.push_back((root / name).string());
      }
      return folders;
    }
  }
  return bad(
      "no data: name files or folders with --data, or - for standard input (the text of this tool's own "
      "sources, which is the default, is not here)");
}

int choose_ranks(const Config& config, int cores) {
  if (config.mesh.find('*') == config.mesh.npos) {
    for (int ranks = 1; ranks <= kMostInMesh; ++ranks) {
      if (MeshLayout::parse(config.mesh, ranks)) {
        return ranks;
      }
    }
  }
  const auto most = std::clamp(cores, 1, kMostUnasked);
  for (int ranks = most; ranks > 1; --ranks) {
    if (train::settle(config, ranks)) {
      return ranks;
    }
  }
  return train::settle(config, 1) ? 1 : most;
}

std::string new_folder(const std::string& name) {
  const auto usual = "runs/" + name;
  auto folder = usual;
  for (int number = 2; has_run(folder); ++number) {
    folder = fmt::format("{}-{}", usual, number);
  }
  return folder;
}

Result<TrainSetup> set_up_training(const train::Flags& flags) {
  TrainSetup setup{.config = flags.config};
  if (const auto settled = settle_setup(flags, setup); !settled) {
    return settled.error();
  }
  auto& config = setup.config;
  const auto input = read_input(config);
  if (!input) {
    return input.error();
  }
  if (const auto good = check_data(config, flags.resume, input.value()); !good) {
    return good.error();
  }
  if (input.value()) {
    if (const auto kept = keep_input(config, *input.value()); !kept) {
      return kept.error();
    }
  }
  const auto starting = *config.out + "/" + train::kStarting;
  if (const auto made = make_folder_for(starting); !made) {
    return made.error();
  }
  if (const auto locked = lock_folder(*config.out, setup); !locked) {
    return locked.error();
  }
  if (const auto written = train::write_config(starting, config); !written) {
    return written.error();
  }
  return setup;
}

}  // namespace tutti::cli
