#pragma once

#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "tutti/base/rank.h"

namespace tutti {

/// What kind of thing went wrong; what a caller can branch on.
enum class Code {
  invalid_argument,    ///< the caller asked for something that cannot be
  mismatch,            ///< ranks called different things
  timed_out,           ///< a deadline passed
  peer_lost,           ///< a rank died or left
  refused,             ///< not let in: wrong secret, wrong user, duplicate rank, other version
  resource_exhausted,  ///< no memory, no descriptors, no room
  unsupported,         ///< nobody here can do that
  aborted,             ///< ended on request, or because an earlier failure broke the group
  not_found,           ///< a key, a file, a program that is not there
  system,              ///< a system call failed
  protocol,            ///< a peer sent what it must not
};

std::string_view to_string(Code code);

/// An expected failure, as a value. Below `comm` failures travel as these; at and above it as `tutti::Exception`.
/// The message is a whole sentence for the user: what happened, to whom, and what to do about it.
struct Error {
  Code code = Code::system;
  std::string message;
  std::optional<Rank> rank = std::nullopt;  ///< the rank that is to blame, when one is
};

/// `Error` from errno: "cannot map 4096 bytes: Cannot allocate memory".
Error system_error(std::string_view what, int error_number);

/// A value or the error that kept it from being. Asking a failed result for its value breaks an invariant.
template <class T>
class [[nodiscard]] Result;

[[noreturn]] void end_program(std::string_view sentence, const std::source_location& where);

/// Ends the program with the sentence and the place when `condition` is false: an invariant of ours is broken.
/// For what a user or a peer can cause, return an Error instead.
inline void require(bool condition, std::string_view sentence,
                    std::source_location where = std::source_location::current()) {
  if (!condition) [[unlikely]] {
    end_program(sentence, where);
  }
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    require(ok(), "value() of a failed result");
    return std::get<0>(state_);
  }
  const T& value() const& {
    require(ok(), "value() of a failed result");
    return std::get<0>(state_);
  }
  T&& value() && {
    require(ok(), "value() of a failed result");
    return std::get<0>(std::move(state_));
  }
  const Error& error() const {
    require(!ok(), "error() of a result that succeeded");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    require(!ok(), "error() of a result that succeeded");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace tutti
