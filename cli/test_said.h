#pragma once

#include <string>

#include <gtest/gtest.h>

namespace tutti::cli {

/// What a command ended with and printed: for tests only.
struct Said {
  int code;
  std::string out;
  std::string errors;
};

template <class F>
Said said_by(F&& command) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = command();
  return {code, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

}  // namespace tutti::cli
