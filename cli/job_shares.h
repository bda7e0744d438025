#pragma once

#include <string>
#include <vector>

#include "cli/rank_runner.h"
#include "cli/run_options.h"
#include "tutti/base/error.h"

namespace tutti::cli {

/// What is known once the store listens.
struct JobPlace {
  std::string store;              ///< its address as text
  std::string store_host;         ///< the host part of it, for a job on several hosts
  int port = 0;                   ///< a free one, for programs that make a store of their own
  std::string directory;          ///< where the user is
  std::vector<std::string> base;  ///< the launcher's environment
};

/// Each host's share of the job: ranks in the order of the hosts, or one share when there are none. Pure.
/// Other hosts have environments of their own; of the launcher's they get what begins with TUTTI_.
std::vector<Share> make_shares(const RunOptions& options, const JobPlace& place);

/// Whether a host's name means this host whatever it is called.
bool is_localhost(const std::string& name);

/// The name under which all hosts reach the store: as told; loopback when all are localhost; else this host's name.
/// Fails when that name leads to a loopback address, which others cannot reach.
Result<std::string> store_host(const RunOptions& options);

/// The command that starts an agent on a host; nothing in it is secret. `own_path` is where this tool lies here.
/// Without a launch agent only localhost can be reached.
Result<std::vector<std::string>> agent_command(const RunOptions& options, const Host& host,
                                               const std::string& own_path);

}  // namespace tutti::cli
