#include "tutti/rendezvous/tls.h"

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/ssl.h>

namespace tutti::rendezvous {
namespace {

/// Two ends of a connection and what runs over them, both in one thread.
class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    int both[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
    here_ = FileDescriptor(both[0]);
    there_ = FileDescriptor(both[1]);
  }
  void connect(const Secret& server, const Secret& client) {
    server_ = Tls::make(Tls::Side::server, server).value()->connect(here_.get()).value();
    client_ = Tls::make(Tls::Side::client, client).value()->connect(there_.get()).value();
  }
  /// How the handshake ends on both sides.
  std::pair<Progress, Progress> shake() {
    auto server = Progress::want_read;
    auto client = Progress::want_read;
    for (int i = 0; i < 10; ++i) {
      client = client == Progress::done || client == Progress::closed ? client : client_->handshake();
      server = server == Progress::done || server == Progress::closed ? server : server_->handshake();
    }
    return {server, client};
  }
  FileDescriptor here_, there_;
  std::unique_ptr<Transport> server_, client_;
};

TEST_F(TlsTest, carries_bytes_between_those_who_share_a_secret) {
  const auto secret = Secret::make().value();
  connect(secret, secret);
  ASSERT_EQ(shake(), std::pair(Progress::done, Progress::done));
  const std::string sent(100'003, 'x');
  std::string received;
  std::size_t done = 0;
  std::vector<char> buffer(70'001);
  while (received.size() < sent.size()) {
    if (done < sent.size()) {
      done += client_->write(std::string_view(sent).substr(done)).bytes;
    }
    const auto moved = server_->read(buffer);
    ASSERT_NE(moved.progress, Progress::closed);
    received.append(buffer.data(), moved.bytes);
  }
  EXPECT_EQ(received, sent);
  EXPECT_EQ(server_->read(buffer).progress, Progress::want_read);
}

TEST_F(TlsTest, is_not_in_the_clear) {
  const auto secret = Secret::make().value();
  connect(secret, secret);
  ASSERT_EQ(shake(), std::pair(Progress::done, Progress::done));
  ASSERT_EQ(client_->write("a very secret word").progress, Progress::done);
  char raw[1024];
  const ssize_t got = ::recv(here_.get(), raw, sizeof(raw), 0);
  ASSERT_GT(got, 18);
  EXPECT_EQ(std::string_view(raw, static_cast<std::size_t>(got)).find("secret"), std::string_view::npos);
}

TEST_F(TlsTest, a_flipped_bit_ends_the_connection) {
  const auto secret = Secret::make().value();
  connect(secret, secret);
  ASSERT_EQ(shake(), std::pair(Progress::done, Progress::done));
  ASSERT_EQ(client_->write("word").progress, Progress::done);
  char raw[1024];
  const ssize_t got = ::recv(here_.get(), raw, sizeof(raw), 0);
  ASSERT_GT(got, 0);
  raw[got - 3] = static_cast<char>(raw[got - 3] ^ 4);
  ASSERT_EQ(::send(there_.get(), raw, static_cast<std::size_t>(got), MSG_NOSIGNAL), got);
  char into[64];
  EXPECT_EQ(server_->read(into).progress, Progress::closed);
}

TEST_F(TlsTest, another_secret_does_not_get_through) {
  connect(Secret::make().value(), Secret::make().value());
  const auto [server, client] = shake();
  EXPECT_NE(server, Progress::done);
  EXPECT_NE(client, Progress::done);
}

/// A client as anybody has it: TLS, but no key.
int ordinary_handshake(int fd, int version, Transport& server) {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  SSL_CTX_set_max_proto_version(context.get(), version);
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
  SSL_set_fd(ssl.get(), fd);
  int result = 0;
  for (int i = 0; i < 10; ++i) {
    result = SSL_connect(ssl.get());
    server.handshake();
  }
  return result;
}

TEST_F(TlsTest, without_the_key_there_is_nothing_to_fall_back_to) {
  for (const int version : {TLS1_3_VERSION, TLS1_2_VERSION}) {
    int both[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
    const FileDescriptor here(both[0]);
    const FileDescriptor there(both[1]);
    const auto server = Tls::make(Tls::Side::server, Secret::make().value()).value()->connect(here.get()).value();
    EXPECT_NE(ordinary_handshake(there.get(), version, *server), 1);
    EXPECT_EQ(server->handshake(), Progress::closed);
  }
}

TEST_F(TlsTest, outlives_the_settings_it_was_made_from) {
  const auto secret = Secret::make().value();
  connect(secret, secret);  // whose settings are gone by now
  ASSERT_EQ(shake(), std::pair(Progress::done, Progress::done));
  ASSERT_EQ(server_->write("x").progress, Progress::done);
  char into[8];
  EXPECT_EQ(client_->read(into).bytes, 1U);
}

TEST_F(TlsTest, a_peer_that_is_gone_is_an_end_not_a_signal) {
  const auto secret = Secret::make().value();
  connect(secret, secret);
  ASSERT_EQ(shake(), std::pair(Progress::done, Progress::done));
  client_.reset();
  there_.reset();
  EXPECT_EQ(server_->write("x").progress, Progress::closed);
  char into[8];
  EXPECT_EQ(server_->read(into).progress, Progress::closed);
}

}  // namespace
}  // namespace tutti::rendezvous
