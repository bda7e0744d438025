#include "tutti/memory/handover.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tutti/memory/arena.h"

namespace tutti::memory {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr std::size_t kOdd = 1003;

FileDescriptor connect_to(const std::string& invitation) {
  const auto name = invitation.substr(0, invitation.find(' '));
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  return socket;
}

TEST(Handover, GivesOneMemoryToManyProcesses) {
  auto arena = Arena::create(kOdd).value();
  auto giver = Giver::open().value();
  const auto invitation = giver.invitation();
  std::vector<pid_t> children;
  for (int child = 0; child < 5; ++child) {
    children.push_back(::fork());
    if (children.back() == 0) {
      auto fd = take(invitation, Deadline::after(seconds(20)));
      if (!fd) {
        ::_exit(1);
      }
      auto mine = Arena::attach(std::move(fd).value(), kOdd);
      if (!mine) {
        ::_exit(2);
      }
      mine.value().data()[child] = std::byte{1};
      ::_exit(0);
    }
  }
  EXPECT_TRUE(giver.give(arena.fd(), 5, Deadline::after(seconds(20))).ok());
  for (int child = 0; child < 5; ++child) {
    int status = -1;
    ::waitpid(children[static_cast<std::size_t>(child)], &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(arena.data()[child], std::byte{1});
  }
}

TEST(Handover, StrangersGetNothingAndHoldNobodyUp) {
  const auto arena = Arena::create(kOdd).value();
  auto giver = Giver::open().value();
  const auto silent = connect_to(giver.invitation());
  const auto liar = connect_to(giver.invitation());
  const std::vector<char> wrong_ticket(16, 'x');
  ASSERT_EQ(::send(liar.get(), wrong_ticket.data(), wrong_ticket.size(), MSG_NOSIGNAL), 16);
  const auto hasty = connect_to(giver.invitation());
  ASSERT_EQ(::send(hasty.get(), wrong_ticket.data(), 3, MSG_NOSIGNAL), 3);

  std::thread honest(
      [invitation = giver.invitation()] { EXPECT_TRUE(take(invitation, Deadline::after(seconds(20))).ok()); });
  EXPECT_TRUE(giver.give(arena.fd(), 1, Deadline::after(seconds(20))).ok());
  honest.join();
  char byte = 0;
  EXPECT_LE(::recv(liar.get(), &byte, 1, 0), 0);  // closed, and nothing came
}

TEST(Handover, SaysHowManyCame) {
  const auto arena = Arena::create(kOdd).value();
  auto giver = Giver::open().value();
  std::thread one([invitation = giver.invitation()] { (void)take(invitation, Deadline::after(seconds(5))); });
  const auto given = giver.give(arena.fd(), 3, Deadline::after(milliseconds(200)));
  one.join();
  ASSERT_FALSE(given.ok());
  EXPECT_EQ(given.error().code, Code::timed_out);
  EXPECT_THAT(given.error().message, HasSubstr("only 1 of 3"));
}

TEST(Handover, WithoutDescriptorsItSaysSo) {
  const auto arena = Arena::create(kOdd).value();
  auto giver = Giver::open().value();
  const auto taker = connect_to(giver.invitation());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto given = giver.give(arena.fd(), 1, Deadline::after(seconds(20)));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(given.ok());
  EXPECT_EQ(given.error().code, Code::resource_exhausted);
  EXPECT_THAT(given.error().message, HasSubstr("ulimit -n"));
}

TEST(Handover, TakingFromNobodyFails) {
  const auto gone = Giver::open().value().invitation();
  EXPECT_THAT(take(gone, Deadline::after(seconds(1))).error().message, HasSubstr("are all ranks on this host?"));
  EXPECT_EQ(take("nonsense", Deadline::after(seconds(1))).error().code, Code::protocol);
  EXPECT_EQ(take("name zz", Deadline::after(seconds(1))).error().code, Code::protocol);
}

TEST(Handover, ASilentGiverTimesOut) {
  const auto giver = Giver::open().value();
  EXPECT_EQ(take(giver.invitation(), Deadline::after(milliseconds(50))).error().code, Code::timed_out);
}

}  // namespace
}  // namespace tutti::memory
