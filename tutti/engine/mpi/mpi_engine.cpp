#include "tutti/engine/mpi/mpi_engine.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "tutti/engine/mpi/across.h"
#include "tutti/engine/mpi/post.h"
#include "tutti/engine/mpi/pulse.h"
#include "tutti/engine/mpi/watch.h"
#include "tutti/engine/shm/shm.h"

namespace tutti::engine {
namespace {

class MpiEngine final : public Engine {
 public:
  MpiEngine(const MpiGroup& group, std::unique_ptr<SharedEngine> near, mpi::Communicator communicator)
      : members_(group.members),
        near_(std::move(near)),
        wires_{.library = group.library,
               .communicator = communicator,
               .members = members_,
               .me = group.rank,
               .hub = near_->hub()},
        across_(wires_, near_->collectives()),
        post_(wires_, [this](const Error& error) { break_group(error); }),
        pulse_(wires_.library->pulse()),
        watch_(group.store, group.name, group.rank, group.members.ranks(),
               [this](const Error& error, mpi::Watch::Source source) { hear(error, source); }) {}

  ~MpiEngine() override {
    post_.stop();
    if (!near_->broken()) {
      (void)wires_.library->call([this] {
        wires_.library->api().free(wires_.communicator);
        return 0;
      });
    }
  }

  std::string_view name() const override { return "mpi"; }
  Rank rank() const override { return wires_.me; }
  int ranks() const override { return members_.ranks(); }
  Status can(Op) const override { return {}; }
  /// Of this host's ranks: what is allocated there is quicker to add up.
  std::shared_ptr<Reach> reach() const override { return near_->reach(); }

  Status run(const Call& call, Deadline deadline) override {
    if (auto error = broken()) {
      return named(*error, call, across_.skip());
    }
    if (auto good = check_call(call, rank(), ranks()); !good) {
      return good;
    }
    const mpi::Library::UnderWay under_way(*wires_.library);
    auto status = across_.run(call, deadline);
    if (!status && status.error().code != Code::mismatch) {
      break_group(status.error());
      return named(status.error(), call, across_.sequence());
    }
    return status;
  }

  plan::GroupShape shape() const override {
    plan::GroupShape shape{
        .engine = "mpi (" + wires_.library->version() + ")", .hosts = {}, .switches = members_.at_switch};
    for (const auto& host : members_.by_host) {
      shape.hosts.push_back(static_cast<int>(host.size()));
    }
    return shape;
  }
  Status choose(Op op, const OpChoices& choices) override { return across_.choose(op, choices); }
  std::vector<Links::Sent> sent() const override { return across_.sent(); }

  void send(Rank to, std::uint64_t tag, ConstBlock bytes, Deadline deadline, Done done) override {
    if (auto error = refused({.sends = true, .peer = to, .tag = tag, .bytes = bytes.size()})) {
      done(*error);
    } else {
      post_.send(to, tag, bytes, deadline, std::move(done));
    }
  }

  void receive(Rank from, std::uint64_t tag, Block bytes, Deadline deadline, Received received) override {
    if (auto error = refused({.sends = false, .peer = from, .tag = tag, .bytes = bytes.size()})) {
      received(*error);
    } else {
      post_.receive(from, tag, bytes, deadline, std::move(received));
    }
  }

  void abort(const Error& why) override { break_group(why); }
  std::optional<Error> broken() const override { return near_->broken(); }
  bool on_own_thread() const override { return post_.on_own_thread(); }

 private:
  std::optional<Error> refused(const mpi::MessageTitle& message) const {
    const auto peer = message.peer;
    const bool any = peer == kAnyRank && !message.sends;
    if (!any && (to_int(peer) < 0 || to_int(peer) >= ranks() || peer == rank())) {
      return Error{Code::invalid_argument,
                   message.sends
                       ? fmt::format("send: rank {} cannot send to rank {}", to_int(rank()), to_int(peer))
                       : fmt::format("receive: rank {} cannot receive from rank {}", to_int(rank()), to_int(peer))};
    }
    auto error = broken();
    return error ? std::optional(mpi::in_operation(*error, message.text())) : std::nullopt;
  }

  /// Ranks of this host may have heard what the store says for this one.
  static Error named(const Error& error, const Call& call, std::uint64_t sequence) {
    return mpi::in_operation(error, Doing{.card = make_card(call), .sequence = sequence, .site = call.site}.text());
  }

  /// On this host, and on the others.
  void break_group(const Error& error) {
    wires_.hub.fail(error);
    if (error.code == Code::peer_lost) {
      wires_.library->expect_no_end();
    }
    if (!heard_) {
      watch_.tell(*broken());
    }
  }

  /// By the watch's thread. Whoever told it has told all.
  void hear(Error error, mpi::Watch::Source source) {
    heard_ = true;
    if (source == mpi::Watch::Source::store && error.rank) {
      const auto found = std::find_if(members_.all.begin(), members_.all.end(),
                                      [&](const mpi::Member& each) { return each.in_world == *error.rank; });
      error.rank = found == members_.all.end()
                       ? std::nullopt
                       : std::optional(to_rank(static_cast<std::size_t>(found - members_.all.begin())));
    }
    if (error.code == Code::peer_lost) {
      wires_.library->expect_no_end();
    }
    wires_.hub.fail(error);
  }

  const mpi::Members members_;
  std::unique_ptr<SharedEngine> near_;
  mpi::Wires wires_;
  mpi::Across across_;
  mpi::Post post_;
  const std::shared_ptr<mpi::Pulse> pulse_;
  std::atomic<bool> heard_{false};
  mpi::Watch watch_;  // goes first: it may call back
};

/// The group's own communicator, so that its messages meet no others. A rank makes one at a time, and ranks make theirs
/// in the same order, so groups whose names have the same hash do not meet either. While it is made, this rank calls
/// nothing else of MPI; nobody can wait for that, since all members have said before that they are here.
Result<mpi::Communicator> make_communicator(const MpiGroup& group, Deadline deadline) {
  std::vector<int> addresses;
  for (const auto& member : group.members.all) {
    addresses.push_back(member.address);
  }
  const auto made = std::make_shared<mpi::Communicator>();
  const auto library = group.library;
  const auto tag = static_cast<int>(std::hash<std::string>{}(group.name) % 32000);
  auto done = library->block("MPI_Comm_create_group", deadline, [library, addresses, tag, made] {
    return library->api().make(library->base(), addresses, tag, *made);
  });
  if (!done) {
    return done.error();
  }
  return *made;
}

/// What kept one rank from its host's memory, all hear of before they wait for it in MPI.
Status all_are_ready(const MpiGroup& group, const Status& mine, Deadline deadline) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < group.members.ranks(); ++rank) {
    keys.push_back(fmt::format("tutti/mpi-near/{}/{}", group.name, rank));
  }
  if (auto told = group.store->set(keys[to_index(group.rank)], mine ? "" : mpi::pack(mine.error()), deadline); !told) {
    return told;
  }
  if (!mine) {
    return mine;
  }
  const auto texts = group.store->get_all(keys, deadline);
  if (!texts) {
    return texts.error();
  }
  for (const auto& text : texts.value()) {
    if (!text.empty()) {
      return mpi::unpack_error(text);
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Engine>> make_mpi_engine(const MpiGroup& group, Deadline deadline) {
  const auto& me = group.members[group.rank];
  const auto& neighbours = group.members.by_host[static_cast<std::size_t>(me.host)];
  auto near = make_shm_engine(*group.store, fmt::format("{}/host-{}", group.name, me.host), me.local,
                              static_cast<int>(neighbours.size()), deadline);
  if (auto all = all_are_ready(group, near ? Status() : Status(near.error()), deadline); !all) {
    return all.error();
  }
  near.value()->hub().name_ranks(neighbours);
  near.value()->hub().expect_long_waits();
  const auto communicator = make_communicator(group, deadline);
  if (!communicator) {
    return communicator.error();
  }
  auto engine = std::make_unique<MpiEngine>(group, std::move(near).value(), communicator.value());
  // A first meeting: afterwards everybody is known to be here.
  if (auto met = engine->run({.op = Op::barrier}, deadline); !met) {
    return met.error();
  }
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace tutti::engine
