#include "tutti/base/environment.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace tutti {
namespace {

/// The four variables in which one launcher tells a process its place.
struct PlaceVariables {
  Launcher launcher;
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;
  const char* job;      ///< what the launcher calls the job; may be unset
  const char* restart;  ///< how often it was restarted; may be unset
};

// In this order: a launcher that stands inside another one (torchrun under srun) is the one that counts.
constexpr std::array<PlaceVariables, 4> kLaunchers{{
    {Launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID",
     "TORCHELASTIC_RESTART_COUNT"},
    {Launcher::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", ""},
    {Launcher::pmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_ID", ""},
    // SLURM_STEP_NUM_TASKS, not SLURM_NTASKS: a batch script has the latter too, and is no rank.
    {Launcher::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
     "SLURM_JOB_ID", "SLURM_STEP_ID"},
}};

Error bad_variable(const std::string& name, const std::string& value, std::string_view wanted) {
  return {.code = Code::invalid_argument, .message = fmt::format("{}={}: must be {}", name, value, wanted)};
}

constexpr long kMostOfAnything = 1 << 24;  ///< no count that makes sense is larger

/// Takes the number that a text starts with off it.
std::optional<long> take_number(std::string_view& text) {
  long number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number > kMostOfAnything) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view start) {
  if (!text.starts_with(start)) {
    return false;
  }
  text.remove_prefix(start.size());
  return true;
}

Result<std::optional<int>> read_count(const VariableReader& read, const std::string& name, long least) {
  const auto text = read(name);
  if (!text) {
    return std::optional<int>{};
  }
  std::string_view rest = *text;
  const auto number = take_number(rest);
  if (!number || !rest.empty() || *number < least) {
    return bad_variable(name, *text, fmt::format("a whole number from {} on", least));
  }
  return std::optional<int>(static_cast<int>(*number));
}

/// The entry of one node in Slurm's list: "2(x3),1" is two on each of three nodes and one on the fourth. Nothing when
/// the list makes no sense or has no such node.
std::optional<int> entry_of_node(std::string_view list, long node) {
  std::optional<int> found;
  do {
    const auto tasks = take_number(list);
    const bool repeated = take(list, "(x");
    const auto nodes = repeated ? take_number(list) : 1;
    if (!tasks || *tasks < 1 || !nodes || *nodes < 1 || (repeated && !take(list, ")"))) {
      return std::nullopt;
    }
    if (node >= 0 && node < *nodes) {
      found = static_cast<int>(*tasks);
    }
    node -= *nodes;
  } while (take(list, ","));
  return list.empty() ? found : std::nullopt;
}

Result<std::optional<int>> read_local_world_size(const VariableReader& read, const PlaceVariables& names) {
  if (names.launcher != Launcher::slurm) {
    return read_count(read, names.local_world_size, 1);
  }
  const auto node = read_count(read, "SLURM_NODEID", 0);
  if (!node) {
    return node.error();
  }
  const auto list = read(names.local_world_size);
  if (!list) {
    return std::optional<int>{};
  }
  const int number = node.value().value_or(0);
  const auto entry = entry_of_node(*list, number);
  if (!entry) {
    return bad_variable(names.local_world_size, *list,
                        fmt::format("ranks per node, as in 2(x3),1, with an entry for SLURM_NODEID={}", number));
  }
  return entry;
}

Result<Place> read_place(const VariableReader& read, const PlaceVariables& names) {
  const auto rank = read_count(read, names.rank, 0);
  const auto world_size = read_count(read, names.world_size, 1);
  const auto local_rank = read_count(read, names.local_rank, 0);
  const auto local_size = read_local_world_size(read, names);
  for (const auto* count : {&rank, &world_size, &local_rank, &local_size}) {
    if (!*count) {
      return count->error();
    }
  }
  if (!world_size.value()) {
    return Error{Code::invalid_argument, fmt::format("{} is set and {} is not: set both, or neither for a world of one",
                                                     names.rank, names.world_size)};
  }
  Place place{.rank = Rank{*rank.value()}, .world_size = *world_size.value()};
  if (to_int(place.rank) >= place.world_size) {
    return Error{Code::invalid_argument,
                 fmt::format("{}={} and {}={}: ranks are numbered from 0 to {}", names.rank, to_int(place.rank),
                             names.world_size, place.world_size, place.world_size - 1)};
  }
  // Who sets only RANK and WORLD_SIZE by hand runs on one host.
  place.local_rank = local_rank.value().value_or(to_int(place.rank));
  place.local_world_size = local_size.value().value_or(place.world_size);
  if (place.local_rank >= place.local_world_size || place.local_world_size > place.world_size) {
    return Error{
        Code::invalid_argument,
        fmt::format("{}={}, {}={}, {}={}: a host cannot have more ranks than the world, nor a local rank beyond "
                    "them",
                    names.local_rank, place.local_rank, names.local_world_size, place.local_world_size,
                    names.world_size, place.world_size)};
  }
  return place;
}

/// `srun --mpi=pmi2` sets PMI_RANK and PMI_SIZE too, and leaves it to its own variables to say which ranks share a
/// host. An mpiexec that runs inside srun says that itself, and numbers its ranks on its own.
bool is_pmi_of_srun(const VariableReader& read, const PlaceVariables& names) {
  return names.launcher == Launcher::pmi && !read(names.local_rank) && read(names.rank) == read("SLURM_PROCID") &&
         read(names.world_size) && read(names.world_size) == read("SLURM_STEP_NUM_TASKS");
}

/// Whether this launcher's variables are the ones that tell the place.
bool counts(const VariableReader& read, const PlaceVariables& names) {
  return read(names.rank) && (names.launcher != Launcher::slurm || read(names.world_size)) &&
         !is_pmi_of_srun(read, names);
}

std::map<std::string, std::string> read_plans(const VariableReader& read) {
  std::map<std::string, std::string> plans;
  constexpr std::array<const char*, 8> kOperations{"ALL_REDUCE",     "REDUCE",     "BROADCAST", "ALL_GATHER",
                                                   "REDUCE_SCATTER", "ALL_TO_ALL", "GATHER",    "SCATTER"};
  for (const std::string operation : kOperations) {
    if (const auto plan = read("TUTTI_" + operation); plan && !plan->empty()) {
      std::string name = operation;
      std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c == '_' ? c : c - 'A' + 'a'; });
      plans[name] = *plan;
    }
  }
  return plans;
}

Status read_own(const VariableReader& read, Environment& environment) {
  environment.store = read("TUTTI_STORE").value_or("");
  environment.secret_file = read("TUTTI_SECRET_FILE").value_or("");
  const auto secret_fd = read_count(read, "TUTTI_SECRET_FD", 0);
  if (!secret_fd) {
    return secret_fd.error();
  }
  environment.secret_fd = secret_fd.value();
  if (const auto level = read("TUTTI_LOG")) {
    constexpr std::array<std::string_view, 6> kLevels{"trace", "debug", "info", "warning", "error", "off"};
    if (std::find(kLevels.begin(), kLevels.end(), *level) == kLevels.end()) {
      return bad_variable("TUTTI_LOG", *level, "one of trace, debug, info, warning, error, off");
    }
    environment.log_level = *level;
  }
  environment.verify_out = read("TUTTI_VERIFY_OUT").value_or("");
  const auto preferences = read_preferences(read);
  if (!preferences) {
    return preferences.error();
  }
  environment.preferences = preferences.value();
  if (const auto timeout = read("TUTTI_TIMEOUT")) {
    char* end = nullptr;
    const double seconds = std::strtod(timeout->c_str(), &end);
    if (end == timeout->c_str() || *end != '\0' || !std::isfinite(seconds) || seconds <= 0 || seconds > 1e9) {
      return bad_variable("TUTTI_TIMEOUT", *timeout, "a number of seconds above 0");
    }
    environment.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
  }
  return {};
}

/// Where caches are kept, when the user says nothing else.
std::string tuning_file(const VariableReader& read) {
  const auto given = [&](const char* name) { return read(name).value_or(""); };
  if (const auto path = given("TUTTI_TUNING"); !path.empty()) {
    return path == "off" ? "" : path;
  }
  if (const auto cache = given("XDG_CACHE_HOME"); cache.starts_with('/')) {
    return cache + "/tutti/tuning.json";
  }
  const auto home = given("HOME");
  return home.starts_with('/') ? home + "/.cache/tutti/tuning.json" : "";
}

/// Whose ranks can find each other by MPI; a Python program may have been told its place in other variables, too.
std::string mpi_launcher(const VariableReader& read) {
  if (read("OMPI_COMM_WORLD_RANK")) {
    return "openmpi";
  }
  return !read("PMI_RANK") ? "" : read("I_MPI_HYDRA_UUID") ? "intelmpi" : "mpich";
}

}  // namespace

Result<Preferences> read_preferences(const VariableReader& read) {
  Preferences preferences{.plans = read_plans(read),
                          .tuning = tuning_file(read),
                          .switches = read("TUTTI_SWITCHES").value_or(""),
                          .engine = read("TUTTI_ENGINE").value_or(""),
                          .mpi = read("TUTTI_MPI").value_or(""),
                          .mpi_launcher = mpi_launcher(read)};
  if (!preferences.engine.empty() && preferences.engine != "mpi") {
    return bad_variable("TUTTI_ENGINE", preferences.engine, "mpi, or not set");
  }
  return preferences;
}

std::string_view to_string(Launcher launcher) {
  switch (launcher) {
    case Launcher::none: return "none";
    case Launcher::tutti: return "tutti run";
    case Launcher::torchrun: return "torchrun";
    case Launcher::open_mpi: return "mpirun (Open MPI)";
    case Launcher::pmi: return "mpiexec (PMI)";
    case Launcher::slurm: return "srun";
  }
  return "unknown";
}

Result<Environment> read_environment(const VariableReader& read) {
  Environment environment;
  if (const auto status = read_own(read, environment); !status) {
    return status.error();
  }
  environment.master_address = read("MASTER_ADDR").value_or("");
  const auto port = read_count(read, "MASTER_PORT", 0);
  if (!port) {
    return port.error();
  }
  if (port.value().value_or(0) > 65535) {
    return bad_variable("MASTER_PORT", std::to_string(*port.value()), "a port, 1 to 65535");
  }
  environment.master_port = static_cast<std::uint16_t>(port.value().value_or(0));

  for (const auto& names : kLaunchers) {
    if (!counts(read, names)) {
      continue;
    }
    const auto place = read_place(read, names);
    if (!place) {
      return place.error();
    }
    environment.place = place.value();
    environment.rank_variable = names.rank;
    // Only `tutti run` hands a secret on by descriptor; a store named by hand is served by rank 0.
    const bool ours = !environment.store.empty() && environment.secret_fd;
    environment.launcher = ours ? Launcher::tutti : names.launcher;
    environment.job =
        fmt::format("{}.{}", read(names.job).value_or(""), *names.restart ? read(names.restart).value_or("") : "");
    break;
  }
  return environment;
}

namespace {

std::optional<std::string> read_own_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

Result<Environment> read_environment() { return read_environment(read_own_variable); }

Result<Preferences> read_preferences() { return read_preferences(read_own_variable); }

}  // namespace tutti
