#pragma once

namespace tutti::cli {

/// What `tutti run --hosts` starts on each host: takes a share of the job from standard input, runs its ranks, and
/// tells on standard output what they print and how they end. Ends all of them when standard input ends, however that
/// comes. Call before any thread exists.
int host_agent_command();

}  // namespace tutti::cli
