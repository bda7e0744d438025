#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "tutti/rendezvous/client.h"
#include "tutti/rendezvous/server.h"

namespace tutti::rendezvous {

/// Long enough for a machine that does many other things: what waits this long is stuck.
inline Deadline patience() { return Deadline::after(std::chrono::seconds(60)); }

/// A server of one job, and ways into it. For tests.
class TestServer {
 public:
  explicit TestServer(Address::Kind kind, int world_size, ServerOptions options = default_options())
      : world_size_(world_size), secret_(options.secret) {
    options.world_size = world_size;
    options.listen = {kind == Address::Kind::tcp ? Address{.kind = Address::Kind::tcp, .name = "127.0.0.1", .port = 0}
                                                 : Address::random_unix()};
    auto started = Server::start(std::move(options));
    EXPECT_TRUE(started.ok()) << (started ? "" : started.error().message);
    server_ = std::move(started).value();
  }

  static ServerOptions default_options() { return {.listen = {}, .secret = Secret::make().value()}; }

  ClientOptions client(int rank) const {
    return {.address = server_->addresses().front(), .rank = Rank{rank}, .world_size = world_size_, .secret = secret_};
  }
  Result<std::shared_ptr<Store>> try_join(int rank) const { return rendezvous::join(client(rank), patience()); }
  std::shared_ptr<Store> join(int rank) const {
    auto joined = try_join(rank);
    EXPECT_TRUE(joined.ok()) << (joined ? "" : joined.error().message);
    return joined ? joined.value() : nullptr;
  }

  Server& server() { return *server_; }
  const Secret& secret() const { return secret_; }
  Address address() const { return server_->addresses().front(); }
  void stop() { server_.reset(); }

  /// Waits until a condition on the counters holds.
  template <class Condition>
  bool eventually(Condition condition) {
    const auto deadline = patience();
    while (!condition(server_->counters())) {
      if (deadline.expired()) {
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  int world_size_;
  Secret secret_;
  std::unique_ptr<Server> server_;
};

/// Tests that hold over every kind of connection.
class OverBoth : public ::testing::TestWithParam<Address::Kind> {};

inline std::string kind_name(const ::testing::TestParamInfo<Address::Kind>& info) {
  return info.param == Address::Kind::tcp ? "tcp" : "unix";
}

}  // namespace tutti::rendezvous
