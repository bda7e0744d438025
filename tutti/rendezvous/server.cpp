#include "tutti/rendezvous/server.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <mutex>
#include <thread>
#include <utility>

#include "tutti/rendezvous/loop.h"
#include "tutti/rendezvous/socket.h"
#include "tutti/rendezvous/tls.h"

namespace tutti::rendezvous {
namespace {

class EpollServer final : public Server {
 public:
  ~EpollServer() override {
    if (::getpid() != owner_) {
      thread_.detach();  // a forked child has the object, but not the thread
      return;
    }
    thread_.request_stop();
    wake();
  }

  Status start(ServerOptions options) {
    std::vector<Listening> listening;
    std::shared_ptr<const Tls> tls;
    for (const auto& address : options.listen) {
      auto one = listen_on(address);
      if (!one) {
        return one.error();
      }
      addresses_.push_back(one.value().address);
      listening.push_back(std::move(one).value());
      if (address.kind == Address::Kind::tcp && !tls) {
        auto made = Tls::make(Tls::Side::server, options.secret);
        if (!made) {
          return made.error();
        }
        tls = made.value();
      }
    }
    loop_ = std::make_unique<Loop>(std::move(options), std::move(listening), std::move(tls), shared_);
    if (auto status = loop_->set_up(); !status) {
      return status;
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { loop_->run(stop); });
    return {};
  }

  std::vector<Address> addresses() const override { return addresses_; }

  ServerCounters counters() const override {
    return {.accepted = shared_.accepted,
            .rejected = shared_.rejected,
            .strangers = shared_.strangers,
            .members = shared_.members,
            .stranger_bytes = Session::stranger_bytes()};
  }

  bool has_joined(Rank rank) const override {
    const std::scoped_lock lock(shared_.mutex);
    return shared_.left.contains(rank);
  }

  std::optional<Deadline::Clock::time_point> left_at(Rank rank) const override {
    const std::scoped_lock lock(shared_.mutex);
    const auto found = shared_.left.find(rank);
    return found == shared_.left.end() ? std::nullopt : found->second;
  }

  void declare_lost(Rank rank, const std::string& sentence) override {
    {
      const std::lock_guard lock(shared_.mutex);
      shared_.lost.emplace_back(rank, sentence);
    }
    wake();
  }

 private:
  void wake() {
    if (shared_.wake.valid()) {
      ::eventfd_write(shared_.wake.get(), 1);
    }
  }

  const pid_t owner_ = ::getpid();
  std::vector<Address> addresses_;
  mutable Loop::Shared shared_;
  std::unique_ptr<Loop> loop_;
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(ServerOptions options) {
  if (options.world_size < 1) {
    return Error{.code = Code::invalid_argument, .message = "a world has at least one rank"};
  }
  auto server = std::make_unique<EpollServer>();
  if (auto status = server->start(std::move(options)); !status) {
    return status.error();
  }
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace tutti::rendezvous
