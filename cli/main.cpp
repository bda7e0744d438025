#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/bench_command.h"
#include "cli/doctor.h"
#include "cli/host_agent.h"
#include "cli/parse.h"
#include "cli/plan_command.h"
#include "cli/report_command.h"
#include "cli/run_command.h"
#include "cli/train_command.h"
#include "cli/verify_command.h"
#include "tutti/version.h"

namespace {

using Arguments = std::vector<std::string>;
using tutti::cli::complain;
using tutti::cli::kUsageError;
using tutti::cli::parse;

constexpr const char* kRunExamples =
    "Examples:\n"
    "  tutti run -n 4 -- ./train --epochs 3     four ranks on this machine\n"
    "  tutti run -n 4 --bind -- ./train         each on its own cores\n"
    "  tutti run --hosts a:2,b:2 -- ./train     two on host a, two on host b, by ssh\n"
    "\n"
    "Exit code: 0 when all ranks ended with 0; else that of the first rank that failed (128 + signal when it was\n"
    "killed); 130 after Ctrl-C; 124 after --timeout; 127 when the program is not there.";

int run(const Arguments& arguments) {
  CLI::App app("Run a program as the ranks of a job: tutti run [OPTIONS] -- PROGRAM [ARGUMENTS]", "tutti run");
  tutti::cli::RunArguments typed;
  tutti::cli::declare_run_options(app, typed);
  app.footer(kRunExamples);
  auto [options, program] = tutti::cli::split_program(app, arguments);
  if (const int end = parse(app, "tutti run", options); end >= 0) {
    return end;
  }
  const auto checked = tutti::cli::check_run_arguments(typed, std::move(program));
  return checked ? tutti::cli::run_command(checked.value()) : complain("tutti run", checked.error().message);
}

int doctor(const Arguments& arguments) {
  CLI::App app("Tell what this machine has, and what that means for a run", "tutti doctor");
  bool json = false;
  app.add_flag("--json", json, "Print an object instead of a table");
  app.footer(
      "Example:\n  tutti doctor --json | jq .processor.cores.data.allowed\n\n"
      "Exit code: 0 unless something makes running impossible.");
  const int end = parse(app, "tutti doctor", arguments);
  return end >= 0 ? end : tutti::cli::doctor_command(json);
}

int host_agent(const Arguments&) { return tutti::cli::host_agent_command(); }

struct Command {
  const char* name;
  const char* what;  ///< for the list of commands; nullptr: not for users
  int (*run)(const Arguments&);
};

constexpr Command kCommands[] = {
    {"run", "run a program as the ranks of a job", run},
    {"train", "train a byte-level GPT on text, over ranks that it starts", tutti::cli::train_command},
    {"generate", "write on where a prompt ends, with what was trained", tutti::cli::generate_command},
    {"bench", "measure collectives", tutti::cli::bench_command},
    {"verify", "compare what ranks compute with what one process does", tutti::cli::verify_command},
    {"plan", "show, prove and price the plans of collectives", tutti::cli::plan_command},
    {"report", "show what recorded runs did, on a page that opens offline", tutti::cli::report_command},
    {"doctor", "tell what this machine has, and what that means for a run", doctor},
    {"host-agent", nullptr, host_agent},
};

void print_help(std::FILE* file) {
  fmt::print(file,
             "Tutti {}: distributed gradient computation for C++ programs on LibTorch\n\nUsage: tutti COMMAND ...\n\n",
             tutti::kVersion);
  for (const Command& command : kCommands) {
    if (command.what != nullptr) {
      fmt::print(file, "  {:<10}{}\n", command.name, command.what);
    }
  }
  fmt::print(file,
             "\n  tutti COMMAND --help explains one; tutti --version tells the version.\n\n"
             "Examples:\n  tutti train\n  tutti run -n 2 -- ./program\n");
}

/// A program that was started with a standard stream closed would find its pipes there. Results that nobody could get
/// are an error; what is said to nobody is not.
void open_standard_streams() {
  while (true) {
    int fd = ::open("/dev/null", O_RDWR);
    if (fd == STDOUT_FILENO) {
      ::close(fd);
      fd = ::open("/dev/null", O_RDONLY);
    }
    if (fd < 0 || fd > STDERR_FILENO) {
      ::close(fd);
      return;
    }
  }
}

int run_tool(const Arguments& arguments) {
  if (arguments.empty()) {
    print_help(stderr);
    return kUsageError;
  }
  const std::string& first = arguments.front();
  if (first == "--help" || first == "-h" || first == "help") {
    print_help(stdout);
    return 0;
  }
  if (first == "--version") {
    fmt::print("tutti {}\n", tutti::kVersion);
    return 0;
  }
  for (const Command& command : kCommands) {
    if (first == command.name) {
      return command.run(Arguments(arguments.begin() + 1, arguments.end()));
    }
  }
  return complain("tutti", fmt::format("there is no {} '{}' (see tutti --help)",
                                       first.starts_with("-") ? "option" : "command", first));
}

}  // namespace

int main(int count, char** values) {
  open_standard_streams();
  // What goes wrong here is never 1: commands end with that when they found something wrong.
  int code = kUsageError;
  try {
    code = run_tool(Arguments(values + 1, values + count));
  } catch (const std::bad_alloc&) {
    return complain("tutti", "there is not enough memory for that");
  } catch (const std::exception& error) {
    return complain("tutti", error.what());
  }
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) != 0 || failed_before) {
    complain("tutti", fmt::format("cannot write to standard output: {}", std::strerror(errno)));
    return code == 0 ? kUsageError : code;
  }
  return code;
}
