#pragma once
// A folder for a test's files, gone with the test.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace tutti::train {

class TestFolder {
 public:
  TestFolder() {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = testing::TempDir() + "train-" + test->name() + "-" + std::to_string(::getpid());
    std::filesystem::create_directories(path_);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  /// Returns the file's path.
  std::string write(const std::string& name, std::string_view text) const {
    auto path = *this / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

}  // namespace tutti::train
