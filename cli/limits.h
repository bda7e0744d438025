#pragma once

#include <sys/resource.h>

namespace tutti::cli {

/// Lets this process open as many descriptors as it may: five per rank do not fit into the usual 1024.
/// Returns the limit there was, for ranks to have.
inline rlimit raise_descriptor_limit() {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit raised{.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  return before;
}

}  // namespace tutti::cli
