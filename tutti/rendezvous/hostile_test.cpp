#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include "tutti/rendezvous/proof.h"
#include "tutti/rendezvous/socket.h"
#include "tutti/rendezvous/test_server.h"
#include "tutti/rendezvous/tls.h"
#include "tutti/rendezvous/transport.h"
#include "tutti/rendezvous/wire.h"
#include "tutti/version.h"

// Those who come to the door and should not, or come badly. Each of them speaks over a real socket.

namespace tutti::rendezvous {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kTcp = Address::Kind::tcp;
constexpr auto kUnix = Address::Kind::unix_name;

/// A connection that says what it is told to.
class Stranger {
 public:
  explicit Stranger(const Address& address) {
    auto connected = connect_to(address, patience());
    EXPECT_TRUE(connected.ok()) << (connected ? "" : connected.error().message);
    socket_ = std::move(connected).value();
  }
  void say(std::string_view bytes) const { ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  /// Up to `most` bytes, fewer when the server closes.
  std::string hear(std::size_t most) const {
    std::string heard;
    char buffer[4096];
    while (heard.size() < most && wait_for(socket_.get(), POLLIN, patience())) {
      const ssize_t got = ::recv(socket_.get(), buffer, std::min(sizeof(buffer), most - heard.size()), 0);
      if (got <= 0) {
        break;
      }
      heard.append(buffer, static_cast<std::size_t>(got));
    }
    return heard;
  }
  /// An answer without a sentence.
  std::string hear_answer() const { return hear(encode(Answer{.sentence = {}}).size()); }
  bool is_turned_away() const {
    hear(1 << 20);
    char byte = 0;
    const ssize_t got = ::recv(socket_.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }
  int fd() const { return socket_.get(); }

 private:
  FileDescriptor socket_;
};

std::string with_length(std::uint32_t length) {
  std::string bytes(sizeof(length), '\0');
  std::copy_n(reinterpret_cast<const char*>(&length), sizeof(length), bytes.begin());
  return bytes;
}

/// As a server with no time for anybody, so that tests need not wait for it.
ServerOptions impatient() {
  auto options = TestServer::default_options();
  options.handshake_timeout = milliseconds(100);
  return options;
}

bool works(TestServer& job) {
  const auto store = job.join(0);
  return store && store->add("n", 1, patience()).ok();
}

TEST(Hostile, garbage_is_turned_away_at_once) {
  std::mt19937 random(4711);
  for (const auto kind : {kUnix, kTcp}) {
    TestServer job(kind, 1);
    for (int i = 0; i < 31; ++i) {
      std::string garbage(1 + random() % 5000, '\0');
      std::generate(garbage.begin(), garbage.end(), [&] { return static_cast<char>(random()); });
      const Stranger stranger(job.address());
      stranger.say(garbage);
      EXPECT_TRUE(stranger.is_turned_away());
    }
    for (const auto* text : {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n", "\x16\x03\x01\x02"}) {
      const Stranger stranger(job.address());
      stranger.say(text);
      EXPECT_TRUE(stranger.is_turned_away()) << text;
    }
    EXPECT_TRUE(works(job));
    EXPECT_EQ(job.server().counters().rejected, 34U);
  }
}

TEST(Hostile, a_hello_that_is_too_long_is_turned_away_before_it_came) {
  TestServer job(kUnix, 1);
  for (const std::uint32_t length : {0xffffffffU, 0x80000000U, 4081U}) {
    const Stranger stranger(job.address());
    stranger.say("TUTTI-HI" + with_length(kProtocol) + with_length(length));
    EXPECT_TRUE(stranger.is_turned_away()) << length;
  }
  EXPECT_TRUE(works(job));
}

TEST(Hostile, a_hello_of_another_protocol_gets_a_sentence) {
  TestServer job(kUnix, 2);
  const Stranger stranger(job.address());
  Hello hello{.protocol = 2, .rank = Rank{1}, .world_size = 2, .pid = 4103, .version = "0.2.0", .host = "b"};
  auto bytes = encode(hello);
  bytes[12] = static_cast<char>(bytes[12] + 5);  // five more bytes, that only protocol 2 knows
  stranger.say(bytes + "extra");
  const auto answer = decode_answer(stranger.hear(kMaxAnswerBytes));
  ASSERT_TRUE(answer.ok() && answer.value());
  EXPECT_FALSE(answer.value()->value.admitted);
  EXPECT_EQ(answer.value()->value.sentence,
            std::string("rank 1 (pid 4103 on host b) runs Tutti 0.2.0 (protocol 2); this job runs ") + kVersion +
                " (protocol 1)");
}

TEST(Hostile, a_members_frame_of_any_length_is_survived) {
  for (const std::uint32_t length : {0xffffffffU, 0x80000000U, (64U << 20) + 1}) {
    TestServer job(kUnix, 1);
    const Stranger member(job.address());
    member.say(encode(Hello{.world_size = 1, .pid = 1, .version = kVersion, .host = "h"}));
    const auto answer = decode_answer(member.hear_answer());
    ASSERT_TRUE(answer.ok() && answer.value() && answer.value()->value.admitted);
    member.say(with_length(length) + "x");
    EXPECT_TRUE(member.is_turned_away()) << length;
    EXPECT_TRUE(works(job));
  }
}

TEST(Hostile, half_a_frame_and_then_nothing_makes_the_rank_lost) {
  TestServer job(kUnix, 2);
  const auto zero = job.join(0);
  {
    const Stranger member(job.address());
    member.say(encode(Hello{.rank = Rank{1}, .world_size = 2, .pid = 4103, .version = kVersion, .host = "h"}));
    member.hear_answer();
    member.say(with_length(100) + "only this");
  }
  const auto waited = zero->get("never", patience());
  EXPECT_EQ(waited.error().code, Code::peer_lost);
  EXPECT_THAT(waited.error().message, HasSubstr("rank 1 (pid 4103 on host h)"));
}

TEST(Hostile, another_secret_is_told_so_and_logged_without_it) {
  std::ostringstream lines;
  auto options = TestServer::default_options();
  options.log = std::make_shared<spdlog::logger>("t", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines));
  {
    TestServer job(kTcp, 1, options);
    auto other = job.client(0);
    other.secret = Secret::make().value();
    const auto joined = join(other, patience());
    ASSERT_FALSE(joined.ok());
    EXPECT_EQ(joined.error().code, Code::refused);
    EXPECT_THAT(joined.error().message, HasSubstr("does not hold this job's secret"));
    EXPECT_TRUE(works(job));
  }
  const auto text = lines.str();
  EXPECT_THAT(text, AllOf(HasSubstr("turned away 127.0.0.1:"), HasSubstr("secret")));
  for (const auto& secret : {options.secret}) {
    const std::string raw(reinterpret_cast<const char*>(secret.bytes().data()), 8);
    EXPECT_THAT(text, Not(HasSubstr(raw)));
  }
}

TEST(Hostile, a_replayed_proof_is_worth_nothing) {
  TestServer job(kTcp, 1);
  std::string proof;
  {
    const Stranger honest(job.address());
    const auto nonce = decode_challenge(honest.hear(kChallengeBytes)).value();
    proof = make_proof(job.secret(), nonce, make_nonce().value());
    honest.say(proof);
    const auto answer = decode_answer(honest.hear_answer());
    ASSERT_TRUE(answer.ok() && answer.value() && answer.value()->value.admitted);
  }
  const Stranger replay(job.address());
  replay.hear(kChallengeBytes);
  replay.say(proof);
  const auto answer = decode_answer(replay.hear(kMaxAnswerBytes));
  ASSERT_TRUE(answer.ok() && answer.value());
  EXPECT_FALSE(answer.value()->value.admitted);
}

TEST(Hostile, a_proof_alone_is_not_enough) {
  // Who can prove but not speak TLS with the key (a relay, say) gets no further.
  TestServer job(kTcp, 1);
  const Stranger relay(job.address());
  const auto nonce = decode_challenge(relay.hear(kChallengeBytes)).value();
  relay.say(make_proof(job.secret(), nonce, make_nonce().value()));
  relay.hear_answer();
  const auto tls = Tls::make(Tls::Side::client, Secret::make().value()).value();
  const auto transport = tls->connect(relay.fd()).value();
  auto progress = transport->handshake();
  while (progress == Progress::want_read || progress == Progress::want_write) {
    wait_for(relay.fd(), progress == Progress::want_read ? POLLIN : POLLOUT, patience());
    progress = transport->handshake();
  }
  EXPECT_EQ(progress, Progress::closed);
  EXPECT_TRUE(job.eventually([](const ServerCounters& c) { return c.rejected == 1 && c.strangers == 0; }));
  EXPECT_TRUE(works(job));
}

TEST(Hostile, a_client_that_sends_byte_by_byte_gets_in_in_time_or_not_at_all) {
  const auto hello = encode(Hello{.world_size = 1, .pid = 1, .version = kVersion, .host = "h"});
  {
    TestServer job(kUnix, 1);
    const Stranger slow(job.address());
    for (const char byte : hello) {
      slow.say(std::string_view(&byte, 1));
    }
    const auto answer = decode_answer(slow.hear_answer());
    ASSERT_TRUE(answer.ok() && answer.value());
    EXPECT_TRUE(answer.value()->value.admitted);
  }
  TestServer job(kUnix, 1, impatient());
  const Stranger slower(job.address());
  const auto deadline = patience();
  std::size_t said = 0;
  while (said + 1 < hello.size() && !deadline.expired()) {  // keeps it busy, and still does not get more time
    slower.say(hello.substr(said++, 1));
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(slower.is_turned_away());
  EXPECT_EQ(job.server().counters().members, 0U);
}

TEST(Hostile, silent_and_half_open_clients_are_ended_in_time) {
  for (const auto kind : {kUnix, kTcp}) {
    TestServer job(kind, 1, impatient());
    std::vector<Stranger> silent;
    for (int i = 0; i < 33; ++i) {
      silent.emplace_back(job.address());
      if (i % 2 == 0) {
        ::shutdown(silent.back().fd(), SHUT_WR);
      }
    }
    EXPECT_TRUE(works(job));
    EXPECT_TRUE(job.eventually([](const ServerCounters& c) { return c.accepted == 34 && c.strangers == 0; }));
  }
}

TEST(Hostile, who_holds_the_secret_but_not_the_clock_is_ended_too) {
  TestServer job(kTcp, 1, impatient());
  const Stranger slow(job.address());
  const auto nonce = decode_challenge(slow.hear(kChallengeBytes)).value();
  slow.say(make_proof(job.secret(), nonce, make_nonce().value()));
  EXPECT_TRUE(slow.is_turned_away());  // in the middle of the TLS handshake
}

TEST(Hostile, of_too_many_strangers_the_oldest_goes) {
  auto options = TestServer::default_options();
  options.max_strangers = 5;
  TestServer job(kTcp, 1, options);
  const Stranger oldest(job.address());
  std::vector<Stranger> others;
  for (int i = 0; i < 5; ++i) {
    others.emplace_back(job.address());
  }
  EXPECT_TRUE(oldest.is_turned_away());
  EXPECT_TRUE(works(job));
  EXPECT_TRUE(job.eventually([](const ServerCounters& c) { return c.strangers <= 5; }));
}

TEST(Hostile, a_flood_of_refusals_is_a_few_lines) {
  std::ostringstream lines;
  auto options = TestServer::default_options();
  options.log = std::make_shared<spdlog::logger>("t", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines));
  const auto before = std::chrono::steady_clock::now();
  {
    TestServer job(kUnix, 1, options);
    for (int i = 0; i < 501; ++i) {
      const Stranger stranger(job.address());
      stranger.say("nonsense that is no hello");
      ASSERT_TRUE(stranger.is_turned_away());
    }
    EXPECT_EQ(job.server().counters().rejected, 501U);
  }
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  const auto text = lines.str();
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 5 * (static_cast<int>(seconds) + 2));
  EXPECT_GE(std::count(text.begin(), text.end(), '\n'), 1);
}

/// Lowers the number of descriptors this process may have, for a while.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit fewer{.rlim_cur = most, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &fewer);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(Hostile, without_descriptors_the_server_neither_dies_nor_spins) {
  TestServer job(kUnix, 1);
  const auto store = job.join(0);
  std::vector<FileDescriptor> all;
  rusage before{};
  rusage after{};
  {
    // Connections that the server cannot accept: the sockets were made while there was room.
    std::vector<FileDescriptor> waiting;
    for (int i = 0; i < 7; ++i) {
      waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    }
    const FewDescriptors few(256);
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) {
      all.emplace_back(fd);
    }
    const auto name = job.address().name;
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), to.sun_path + 1);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    for (const auto& socket : waiting) {
      ASSERT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), length), 0);
    }
    ::getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(milliseconds(50));
      EXPECT_TRUE(store->add("n", 1, patience()).ok());  // who is in is served as ever
    }
    ::getrusage(RUSAGE_SELF, &after);
    all.clear();
  }
  const auto cpu = [](const rusage& use) {
    return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
  };
  EXPECT_LT(cpu(after) - cpu(before), 0.2);  // of a quarter of a second; spinning would take all of it
  const Stranger late(job.address());
  late.say("nonsense");
  EXPECT_TRUE(late.is_turned_away());  // and it accepts again
}

TEST(Hostile, strangers_make_room_when_descriptors_run_out) {
  TestServer job(kTcp, 2);
  const auto zero = job.join(0);
  std::vector<Stranger> silent;
  const FewDescriptors few(256);
  for (int i = 0; i < 100; ++i) {
    silent.emplace_back(job.address());
  }
  ASSERT_TRUE(job.eventually([](const ServerCounters& c) { return c.strangers == 100; }));
  std::vector<FileDescriptor> rest;
  for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) {
    rest.emplace_back(fd);
  }
  for (int i = 0; i < 3; ++i) {  // for the client itself: its socket, its wake-up; the server's end needs room
    rest.pop_back();
  }
  const auto one = job.join(1);
  ASSERT_NE(one, nullptr);
  EXPECT_TRUE(one->add("n", 1, patience()).ok());
}

}  // namespace
}  // namespace tutti::rendezvous
