#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/hosts.h"
#include "cli/supervisor.h"
#include "tutti/base/error.h"
#include "tutti/plan/topology.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the parser library's own
class App;
}

namespace tutti::cli {

/// What the user typed, as text; and what it means.
struct RunArguments {
  std::string ranks;
  std::string bind = "none";
  std::string hosts;
  std::string host_file;
  std::string launch_agent = "ssh -T -o BatchMode=yes";
  std::string remote_tutti;
  std::string address;
  std::string log_directory;
  std::vector<std::string> variables;
  double grace = 5;
  double timeout = 0;
  bool no_prefix = false;
  bool quiet = false;
};

struct RunOptions {
  int world_size = 1;
  plan::Bind bind = plan::Bind::none;
  std::vector<Host> hosts = {};  ///< empty: this host, without an agent
  std::vector<std::string> launch_agent = {};
  std::string remote_tutti = {};
  std::string address = {};
  std::vector<std::pair<std::string, std::string>> variables = {};
  std::vector<std::string> command = {};
  Supervisor::Options supervisor = {};
};

/// Declares the options of `tutti run`; parsing fills `arguments`, which must outlive the parser.
void declare_run_options(CLI::App& app, RunArguments& arguments);

/// Checks what was typed. Each error is one sentence.
Result<RunOptions> check_run_arguments(const RunArguments& arguments, std::vector<std::string> command);

/// Where the program begins among the arguments after `run`: after "--", or at the first one that is neither an option
/// nor an option's value. `app` knows which options take a value. Returns options and program.
std::pair<std::vector<std::string>, std::vector<std::string>> split_program(const CLI::App& app,
                                                                            const std::vector<std::string>& arguments);

}  // namespace tutti::cli
