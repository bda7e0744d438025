#pragma once

#include <span>

#include "tutti/comm/group.h"

namespace tutti::conformance {

/// One thing that a group must do right, whatever carries it. Every rank runs the same cases in the same order.
struct Case {
  const char* name;
  void (*run)(const Group& group);  ///< throws, saying what is wrong
  /// Whether stock c10d backends are held to it, too; some cases are about more than they promise.
  bool stock = true;
};

std::span<const Case> cases();

}  // namespace tutti::conformance
