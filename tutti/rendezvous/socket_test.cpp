#include "tutti/rendezvous/socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include <gmock/gmock.h>

namespace tutti::rendezvous {
namespace {

using ::testing::HasSubstr;

Deadline patience() { return Deadline::after(std::chrono::seconds(60)); }

void expect_well_behaved(int fd) {
  EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
}

TEST(Socket, a_name_is_free_again_when_its_socket_is_closed) {
  const auto address = Address::random_unix();
  for (int i = 0; i < 3; ++i) {
    const auto listening = listen_on(address);
    ASSERT_TRUE(listening.ok()) << listening.error().message;
    EXPECT_FALSE(listen_on(address).ok());
  }
  const auto nobody = connect_to(address, patience());
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error().code, Code::not_found);
}

TEST(Socket, a_name_of_the_longest_length_is_not_its_neighbour) {
  const Address one{.name = std::string(106, 'n') + "1"};
  const Address two{.name = std::string(106, 'n') + "2"};
  const auto listening = listen_on(one);
  ASSERT_TRUE(listening.ok());
  EXPECT_TRUE(connect_to(one, patience()).ok());
  EXPECT_FALSE(connect_to(two, patience()).ok());
}

TEST(Socket, neither_blocks_nor_is_inherited) {
  for (const auto& address : {Address::random_unix(), Address::parse("tcp:127.0.0.1:0").value()}) {
    const auto listening = listen_on(address);
    ASSERT_TRUE(listening.ok());
    expect_well_behaved(listening.value().socket.get());
    const auto connected = connect_to(listening.value().address, patience());
    ASSERT_TRUE(connected.ok());
    expect_well_behaved(connected.value().get());
  }
}

TEST(Socket, a_port_of_nought_is_a_free_one) {
  const auto listening = listen_on(Address::parse("tcp:127.0.0.1:0").value());
  ASSERT_TRUE(listening.ok());
  EXPECT_NE(listening.value().address.port, 0);
  EXPECT_EQ(listening.value().address.name, "127.0.0.1");
}

TEST(Socket, an_address_that_is_not_this_machines_is_an_error) {
  const auto listening = listen_on(Address::parse("tcp:192.0.2.1:0").value());  // for documentation, nobody has it
  ASSERT_FALSE(listening.ok());
  EXPECT_THAT(listening.error().message, HasSubstr("tcp:192.0.2.1:0"));
}

TEST(Socket, knows_the_other_end) {
  const auto listening = listen_on(Address::random_unix());
  ASSERT_TRUE(listening.ok());
  const auto connected = connect_to(listening.value().address, patience());
  ASSERT_TRUE(connected.ok());
  EXPECT_EQ(peer_user(connected.value().get()).value(), ::geteuid());
  EXPECT_THAT(peer_text(connected.value().get()), HasSubstr("pid " + std::to_string(::getpid())));
  EXPECT_FALSE(peer_user(-1).ok());
  EXPECT_THAT(peer_text(-1), HasSubstr("gone"));
}

TEST(Socket, names_tcp_peers_with_their_port) {
  const auto listening = listen_on(Address::parse("tcp:127.0.0.1:0").value());
  ASSERT_TRUE(listening.ok());
  const auto connected = connect_to(listening.value().address, patience());
  ASSERT_TRUE(connected.ok());
  EXPECT_EQ(peer_text(connected.value().get()), "127.0.0.1:" + std::to_string(listening.value().address.port));
}

TEST(Socket, waits_no_longer_than_told) {
  const auto listening = listen_on(Address::random_unix());
  ASSERT_TRUE(listening.ok());
  EXPECT_FALSE(wait_for(listening.value().socket.get(), POLLIN, Deadline::after(std::chrono::milliseconds(3))));
  const auto connected = connect_to(listening.value().address, patience());
  EXPECT_TRUE(wait_for(listening.value().socket.get(), POLLIN, patience()));
}

TEST(Socket, this_machine_has_a_name) { EXPECT_FALSE(host_name().empty()); }

}  // namespace
}  // namespace tutti::rendezvous
