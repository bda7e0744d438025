#include "tutti/base/forked.h"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(ProcessGeneration, AChildHasAnotherOneAndItsChildAgain) {
  const auto mine = process_generation();
  const auto child = ::fork();
  if (child == 0) {
    const auto theirs = process_generation();
    const auto grandchild = ::fork();
    if (grandchild == 0) {
      ::_exit(process_generation() != theirs && process_generation() != mine ? 0 : 1);
    }
    int status = -1;
    ::waitpid(grandchild, &status, 0);
    ::_exit(status == 0 && theirs != mine ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(process_generation(), mine);
}

}  // namespace
}  // namespace tutti
