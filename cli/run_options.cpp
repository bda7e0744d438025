#include "cli/run_options.h"

#include <cctype>
#include <cmath>
#include <fstream>
#include <memory>
#include <numeric>
#include <sstream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/system_facts.h"

namespace tutti::cli {
namespace {

Error bad(std::string message) { return {.code = Code::invalid_argument, .message = std::move(message)}; }

Result<std::pair<std::string, std::string>> parse_variable(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return bad(fmt::format("--env '{}': expected NAME=VALUE", text));
  }
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return bad(fmt::format("cannot read the host file '{}'", path));
  }
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<std::vector<Host>> read_hosts(const RunArguments& arguments) {
  if (!arguments.hosts.empty() && !arguments.host_file.empty()) {
    return bad("--hosts and --hostfile say the same thing: give one of them");
  }
  if (!arguments.hosts.empty()) {
    return parse_hosts(arguments.hosts);
  }
  if (arguments.host_file.empty()) {
    return std::vector<Host>{};
  }
  const auto text = read_text(arguments.host_file);
  if (!text) {
    return text.error();
  }
  return parse_host_file(text.value());
}

/// The number of ranks: as told, as the hosts have, or one per core that may be used.
Result<int> count_ranks(const RunArguments& arguments, const std::vector<Host>& hosts) {
  if (!hosts.empty()) {
    const int total =
        std::accumulate(hosts.begin(), hosts.end(), 0, [](int sum, const Host& host) { return sum + host.ranks; });
    auto told = arguments.ranks.empty() ? Result<int>(total) : parse_rank_count(arguments.ranks);
    if (told && told.value() != total) {
      return bad(fmt::format("-n {} but the hosts have {} ranks together: leave -n out", told.value(), total));
    }
    return told;
  }
  if (!arguments.ranks.empty()) {
    return parse_rank_count(arguments.ranks);
  }
  const auto topology = plan::read_topology();
  if (!topology) {
    return topology.error();
  }
  return usable_cores(topology.value());
}

Status check_seconds(const char* option, double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) {
    return bad(fmt::format("{} {}: expected a number of seconds, 0 or more", option, seconds));
  }
  return {};
}

/// An empty value is a variable that somebody forgot to set, not the default.
std::string not_empty(const std::string& value) { return value.empty() ? "expected a value, not nothing" : ""; }

/// Writes a value that is optional, and then comes after '=', as it is typed: --bind[=HOW].
class OptionFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_type_name();
    return type.starts_with("[=") ? type : CLI::Formatter::make_option_opts(option);
  }
};

}  // namespace

void declare_run_options(CLI::App& app, RunArguments& arguments) {
  app.formatter(std::make_shared<OptionFormatter>());
  app.add_option("-n,--ranks", arguments.ranks, "Number of ranks; one per core when not given")
      ->type_name("N")
      ->check(not_empty);
  app.add_option("--env", arguments.variables, "Set a variable for all ranks; may be repeated")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--bind", arguments.bind, "Tie ranks to cores or NUMA nodes: core (when only --bind), numa, none")
      ->type_name("[=HOW]");
  app.add_option("--grace", arguments.grace, "Time that ranks have to end when the job is stopped (5)")
      ->type_name("SECONDS");
  app.add_option("--timeout", arguments.timeout, "Stop the job after this time; exit code 124")->type_name("SECONDS");
  app.add_flag("--no-prefix", arguments.no_prefix, "Print lines without the rank's number");
  app.add_flag("--quiet", arguments.quiet, "Print nothing of the ranks, only why one failed");
  app.add_option("--log-dir", arguments.log_directory, "Write DIR/rank-N.out and DIR/rank-N.err as well")
      ->type_name("DIR");
  app.add_option("--hosts", arguments.hosts, "Hosts and their ranks, for a job on several machines")
      ->type_name("a:2,b:2")
      ->check(not_empty);
  app.add_option("--hostfile", arguments.host_file, "The same from a file, one host per line")
      ->type_name("FILE")
      ->check(not_empty);
  app.add_option("--launch-agent", arguments.launch_agent,
                 "Command that runs a command on a host (ssh -T -o BatchMode=yes); '' for localhost without one")
      ->type_name("CMD");
  app.add_option("--remote-tutti", arguments.remote_tutti, "Path of this tool on the hosts; the same as here")
      ->type_name("PATH");
  app.add_option("--address", arguments.address, "Name or address under which the hosts reach this one")
      ->type_name("HOST");
}

Result<RunOptions> check_run_arguments(const RunArguments& arguments, std::vector<std::string> command) {
  if (command.empty()) {
    return bad("which program? Try: tutti run -n 2 -- ./program");
  }
  RunOptions options{.command = std::move(command)};
  const auto hosts = read_hosts(arguments);
  if (!hosts) {
    return hosts.error();
  }
  options.hosts = hosts.value();
  const auto ranks = count_ranks(arguments, options.hosts);
  if (!ranks) {
    return ranks.error();
  }
  options.world_size = ranks.value();
  const auto bind = plan::parse_bind(arguments.bind);
  if (!bind) {
    return bind.error();
  }
  options.bind = bind.value();
  for (const std::string& text : arguments.variables) {
    auto variable = parse_variable(text);
    if (!variable) {
      return variable.error();
    }
    options.variables.push_back(std::move(variable).value());
  }
  for (const Status& status :
       {check_seconds("--grace", arguments.grace), check_seconds("--timeout", arguments.timeout)}) {
    if (!status) {
      return status.error();
    }
  }
  const auto agent = split_command(arguments.launch_agent);
  if (!agent) {
    return agent.error();
  }
  options.launch_agent = agent.value();
  options.remote_tutti = arguments.remote_tutti;
  options.address = arguments.address;
  options.supervisor = {.world_size = options.world_size, .grace = Supervisor::Seconds(arguments.grace)};
  if (arguments.timeout > 0) {
    options.supervisor.timeout = Supervisor::Seconds(arguments.timeout);
  }
  options.supervisor.output = {
      .prefix = !arguments.no_prefix, .quiet = arguments.quiet, .log_directory = arguments.log_directory};
  return options;
}

std::pair<std::vector<std::string>, std::vector<std::string>> split_program(const CLI::App& app,
                                                                            const std::vector<std::string>& arguments) {
  std::vector<std::string> options;
  std::size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      ++i;
      break;
    }
    if (argument.empty() || argument[0] != '-' || argument == "-") {
      break;
    }
    if (argument == "--bind") {
      // Its value is optional: the next word may be the program.
      const auto next = i + 1 < arguments.size() ? arguments[i + 1] : "";
      const bool valued = next == "core" || next == "numa" || next == "none";
      options.push_back("--bind=" + (valued ? next : "core"));
      i += valued ? 1 : 0;
      continue;
    }
    options.push_back(argument);
    const CLI::Option* option = app.get_option_no_throw(argument);
    if (option != nullptr && option->get_items_expected_max() > 0 && i + 1 < arguments.size()) {
      options.push_back(arguments[++i]);
    }
  }
  return {options, {arguments.begin() + static_cast<std::ptrdiff_t>(std::min(i, arguments.size())), arguments.end()}};
}

}  // namespace tutti::cli
