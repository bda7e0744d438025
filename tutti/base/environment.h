#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tutti/base/error.h"
#include "tutti/base/rank.h"

namespace tutti {

/// Who started this process.
enum class Launcher { none, tutti, torchrun, open_mpi, pmi, slurm };

std::string_view to_string(Launcher launcher);

/// This process's place in the job, as its launcher told it.
struct Place {
  Rank rank{0};
  int world_size = 1;
  int local_rank = 0;        ///< number among the ranks of this host
  int local_world_size = 1;  ///< ranks on this host
};

/// What carries groups, and by which algorithms, where the user does not leave that to Tutti.
struct Preferences {
  /// TUTTI_ALL_REDUCE and the like: by the operation's name ("all_reduce"), the plan that it is to be run by.
  std::map<std::string, std::string> plans = {};
  std::string tuning = {};        ///< TUTTI_TUNING: file of what `tutti bench --tune` found; empty: none
  std::string switches = {};      ///< TUTTI_SWITCHES: file of which hosts are at which switch; empty: none
  std::string engine = {};        ///< TUTTI_ENGINE: "mpi" for MPI between all ranks, on one host too; else empty
  std::string mpi = {};           ///< TUTTI_MPI: which MPI, by name or path; "none"; or empty
  std::string mpi_launcher = {};  ///< which MPI's launcher started this process; empty: none's
};

/// Everything that Tutti reads from the environment, read once and passed down; docs/environment.md lists the
/// variables.
struct Environment {
  Launcher launcher = Launcher::none;
  Place place;
  std::string rank_variable;  ///< the variable that held the rank: RANK, PMI_RANK, ...
  std::string job;            ///< what tells this job (and this restart of it) from others, as far as the launcher says
  std::string master_address;     ///< MASTER_ADDR
  std::uint16_t master_port = 0;  ///< MASTER_PORT; 0 when not set

  std::string store;                  ///< TUTTI_STORE: where the job's store is, "unix:NAME" or "tcp:HOST:PORT"
  std::optional<int> secret_fd;       ///< TUTTI_SECRET_FD: descriptor to read the job's secret from
  std::string secret_file;            ///< TUTTI_SECRET_FILE: file (0600) that holds it
  std::string log_level = "warning";  ///< TUTTI_LOG
  std::string verify_out;             ///< TUTTI_VERIFY_OUT: file that tutti::verify adds its reports to; empty: none
  Preferences preferences = {};
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  ///< TUTTI_TIMEOUT, in seconds, fractions allowed
};

/// Looks a variable up; nullopt when it is not set.
using VariableReader = std::function<std::optional<std::string>(const std::string& name)>;

/// Reads all variables. Fails on one that does not make sense, naming it, its value and what it should be.
Result<Environment> read_environment(const VariableReader& read);

/// From this process's own environment.
Result<Environment> read_environment();

/// Only these, for a rank whose place somebody else knows.
Result<Preferences> read_preferences(const VariableReader& read);
Result<Preferences> read_preferences();

}  // namespace tutti
