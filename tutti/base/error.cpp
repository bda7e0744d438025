#include "tutti/base/error.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tutti {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::invalid_argument: return "invalid argument";
    case Code::mismatch: return "mismatch";
    case Code::timed_out: return "timed out";
    case Code::peer_lost: return "peer lost";
    case Code::refused: return "refused";
    case Code::resource_exhausted: return "resource exhausted";
    case Code::unsupported: return "unsupported";
    case Code::aborted: return "aborted";
    case Code::not_found: return "not found";
    case Code::system: return "system";
    case Code::protocol: return "protocol";
  }
  return "unknown";
}

Error system_error(std::string_view what, int error_number) {
  std::string message(what);
  message += ": ";
  message += std::strerror(error_number);
  return {.code = Code::system, .message = std::move(message)};
}

void end_program(std::string_view sentence, const std::source_location& where) {
  std::fprintf(stderr, "tutti: broken invariant: %.*s (%s:%u, %s)\n", static_cast<int>(sentence.size()),
               sentence.data(), where.file_name(), static_cast<unsigned>(where.line()), where.function_name());
  std::abort();
}

}  // namespace tutti
