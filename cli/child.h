#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/plan/topology.h"

namespace tutti::cli {

/// The descriptor under which a rank finds the job's secret. High enough to be out of the way of shell scripts.
inline constexpr int kSecretDescriptor = 42;

/// What a child has that its parent changed for itself.
struct Inheritance {
  sigset_t mask;
  sigset_t ignored;
  rlimit descriptors;
};

/// A process to start. Descriptors are borrowed; the child has these and no others.
struct ChildSpec {
  std::vector<std::string> command;      ///< program (looked up in PATH) and arguments
  std::vector<std::string> environment;  ///< all of it, "NAME=VALUE"
  std::string directory = {};            ///< where it starts; empty: here
  int input = 0;
  int output = 1;
  int errors = 2;
  int secret = -1;  ///< becomes kSecretDescriptor; -1: none
  plan::Placement placement = {};
  Inheritance inheritance;
};

/// Starts a process in a process group of its own. It is killed when the calling thread ends, so call this from the
/// main thread. Returns once the program itself runs, or says why it does not: Code::not_found when there is no such
/// program, Code::refused when it cannot be executed.
Result<pid_t> spawn(const ChildSpec& spec);

/// What a shell would exit with for such an error: 127, 126, or 1.
int spawn_exit_code(const Error& error);

}  // namespace tutti::cli
