#pragma once

#include <optional>
#include <utility>

#include <c10/util/Exception.h>

#include "tutti/base/error.h"

namespace tutti {

/// What Tutti throws. To c10d and to Python it is a DistBackendError; here it also says of what kind it is and who is
/// to blame. The text is a whole sentence: what happened, where, which rank, what to do.
class Exception : public c10::DistBackendError {
 public:
  explicit Exception(tutti::Error error) : c10::DistBackendError(error.message, nullptr), error_(std::move(error)) {}

  Code code() const { return error_.code; }
  std::optional<Rank> rank() const { return error_.rank; }
  const tutti::Error& error() const { return error_; }

 private:
  tutti::Error error_;
};

/// From a value below to an exception above.
template <class T>
T value_or_throw(Result<T> result) {
  if (!result) {
    throw Exception(result.error());
  }
  return std::move(result).value();
}

inline void throw_if_failed(const Status& status) {
  if (!status) {
    throw Exception(status.error());
  }
}

}  // namespace tutti
