#pragma once

#include <source_location>

#include "tutti/engine/call.h"

namespace tutti {

inline engine::CallSite to_call_site(const std::source_location& where) {
  return {.file = where.file_name(), .line = where.line()};
}

/// While it lives, operations that this thread starts are said to come from there. For who calls c10d's interface,
/// which has no way to pass it on.
class SiteScope {
 public:
  explicit SiteScope(const std::source_location& where);
  ~SiteScope();
  SiteScope(const SiteScope&) = delete;

 private:
  engine::CallSite outer_;
};

/// Where this thread's program is, as the innermost scope says; nothing without one.
engine::CallSite current_site();

}  // namespace tutti
