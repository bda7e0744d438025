#include "tutti/rendezvous/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

namespace tutti::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SecretFile : public ::testing::Test {
 protected:
  SecretFile() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tutti-secret-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    path_ = directory_ + "/secret";
  }
  ~SecretFile() override { std::filesystem::remove_all(directory_); }
  void write(const std::string& content, mode_t mode = 0600) const {
    std::ofstream(path_, std::ios::binary) << content;
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
  }
  std::string directory_;
  std::string path_;
};

TEST(Secret, two_are_never_the_same) { EXPECT_NE(Secret::make().value().bytes(), Secret::make().value().bytes()); }

TEST(Secret, travels_by_descriptor) {
  const auto secret = Secret::make().value();
  const auto file = secret.descriptor().value();
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_CUR), 0);
  for (int i = 0; i < 3; ++i) {  // every rank reads the same one
    EXPECT_EQ(Secret::from_descriptor(file.get()).value().bytes(), secret.bytes());
  }
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_CUR), 0);
  EXPECT_EQ(::fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Secret, its_descriptor_cannot_be_changed) {
  const auto file = Secret::make().value().descriptor().value();
  EXPECT_LT(::pwrite(file.get(), "x", 1, 0), 0);
  EXPECT_NE(::ftruncate(file.get(), 3), 0);
}

TEST(Secret, other_descriptors_are_refused) {
  EXPECT_FALSE(Secret::from_descriptor(-1).ok());
  const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto nothing = Secret::from_descriptor(null.get());
  ASSERT_FALSE(nothing.ok());
  EXPECT_THAT(nothing.error().message, HasSubstr("0 bytes"));
}

TEST_F(SecretFile, is_hashed) {
  write(std::string(100, 'a'));
  const auto one = Secret::from_file(path_).value();
  EXPECT_EQ(Secret::from_file(path_).value().bytes(), one.bytes());
  write(std::string(99, 'a') + "b");
  EXPECT_NE(Secret::from_file(path_).value().bytes(), one.bytes());
}

TEST_F(SecretFile, that_others_can_read_is_refused) {
  for (const mode_t mode : {0640, 0604, 0620, 0666}) {
    write("topsecret topsecret topsecret topsecret", mode);
    const auto secret = Secret::from_file(path_);
    ASSERT_FALSE(secret.ok());
    EXPECT_EQ(secret.error().code, Code::refused);
    EXPECT_THAT(secret.error().message, AllOf(HasSubstr("chmod 600"), HasSubstr(path_), Not(HasSubstr("topsecret"))));
  }
}

TEST_F(SecretFile, that_is_too_short_is_refused) {
  write(std::string(31, 'a'));
  const auto secret = Secret::from_file(path_);
  ASSERT_FALSE(secret.ok());
  EXPECT_THAT(secret.error().message, HasSubstr("31 bytes"));
  write(std::string(32, 'a'));
  EXPECT_TRUE(Secret::from_file(path_).ok());
}

TEST_F(SecretFile, that_is_none_is_refused) {
  EXPECT_EQ(Secret::from_file(path_).error().code, Code::not_found);
  EXPECT_EQ(Secret::from_file(directory_).error().code, Code::refused);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(Secret::from_file(path_).error().code, Code::refused);  // and does not wait for a writer
}

TEST_F(SecretFile, of_another_user_is_refused) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs two users";
  }
  write(std::string(32, 'a'));
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_THAT(Secret::from_file(path_).error().message, HasSubstr("uid 65534"));
}

}  // namespace
}  // namespace tutti::rendezvous
