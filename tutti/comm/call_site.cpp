#include "tutti/comm/call_site.h"

#include <utility>

namespace tutti {
namespace {

thread_local engine::CallSite innermost;

}  // namespace

SiteScope::SiteScope(const std::source_location& where) : outer_(std::exchange(innermost, to_call_site(where))) {}

SiteScope::~SiteScope() { innermost = outer_; }

engine::CallSite current_site() { return innermost; }

}  // namespace tutti
