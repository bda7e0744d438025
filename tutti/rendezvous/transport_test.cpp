#include "tutti/rendezvous/transport.h"

#include <sys/socket.h>

#include <string>

#include <gtest/gtest.h>

namespace tutti::rendezvous {
namespace {

class TransportTest : public ::testing::Test {
 protected:
  TransportTest() {
    int both[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
    here_ = FileDescriptor(both[0]);
    there_ = FileDescriptor(both[1]);
  }
  FileDescriptor here_, there_;
};

TEST_F(TransportTest, never_waits) {
  const auto transport = plain_transport(here_.get());
  EXPECT_EQ(transport->handshake(), Progress::done);
  char into[8];
  EXPECT_EQ(transport->read(into).progress, Progress::want_read);
  const std::string much(1 << 20, 'x');
  auto moved = transport->write(much);
  EXPECT_EQ(moved.progress, Progress::done);
  while (moved.progress == Progress::done) {
    EXPECT_GT(moved.bytes, 0U);
    moved = transport->write(much);
  }
  EXPECT_EQ(moved.progress, Progress::want_write);
}

TEST_F(TransportTest, a_peer_that_is_gone_is_an_end_not_a_signal) {
  const auto transport = plain_transport(here_.get());
  there_.reset();
  char into[8];
  EXPECT_EQ(transport->read(into).progress, Progress::closed);
  EXPECT_EQ(transport->write("x").progress, Progress::closed);
}

}  // namespace
}  // namespace tutti::rendezvous
