#include "tutti/comm/group_factory.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/sha.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "tutti/comm/c10d_store.h"
#include "tutti/comm/host.h"
#include "tutti/engine/apart/apart.h"
#include "tutti/engine/mpi/mpi_engine.h"
#include "tutti/engine/shm/shm.h"

namespace tutti {

GroupFactory::GroupFactory(Options options) : options_(std::move(options)) {
  if (!options_.tuning) {
    options_.tuning = std::make_shared<TuningCache>(options_.preferences.tuning);
  }
}

std::string GroupFactory::next_name(const std::vector<Rank>& members) {
  std::vector<int> numbers;
  std::transform(members.begin(), members.end(), std::back_inserter(numbers), to_int);
  auto list = fmt::format("{}", fmt::join(numbers, "."));
  if (list.size() > 32) {  // the name stands in many keys: a long list becomes its hash
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    SHA256(reinterpret_cast<const unsigned char*>(list.data()), list.size(), digest.data());
    list = fmt::format("of-{}-{:02x}", numbers.size(), fmt::join(digest, ""));
  }
  const std::scoped_lock lock(mutex_);
  // Every member counts the same way, so they come to the same name without asking anybody.
  return fmt::format("group-{}-{}", list, made_[members]++);
}

std::unique_ptr<engine::Engine> GroupFactory::make_engine(const std::string& name, Rank me, int size) {
  if (options_.memories) {
    auto engine = value_or_throw(engine::make_local_engine(*options_.memories, name, me, size));
    choose_ways(*engine, options_.tuning->text_for(size), options_.preferences);
    return engine;
  }
  const auto deadline = Deadline::after_or_never(options_.timeout);
  const auto tell = me == Rank{0} ? options_.tuning->text_for(size) : std::string();
  const auto met = value_or_throw(exchange_hosts(*options_.store, "tutti/hosts/" + name, me, size, deadline, tell));
  const auto& hosts = met.names;
  const bool one_host =
      std::all_of(hosts.begin(), hosts.end(), [&](const std::string& host) { return host == hosts[0]; });
  std::unique_ptr<engine::Engine> engine;
  if (one_host && options_.preferences.engine != "mpi") {
    engine = value_or_throw(engine::make_shm_engine(*options_.store, name, me, size, deadline));
  } else {
    engine = make_far_engine(name, me, hosts, deadline);
  }
  if (engine->can(engine::Op::all_reduce)) {
    choose_ways(*engine, met.told, options_.preferences);
  }
  return engine;
}

/// By MPI, when all ranks have one and the same; whatever keeps one of them from it is known to all.
std::unique_ptr<engine::Engine> GroupFactory::make_far_engine(const std::string& name, Rank me,
                                                              const std::vector<std::string>& hosts,
                                                              Deadline deadline) {
  const engine::mpi::LibraryOptions wanted{.wanted = options_.preferences.mpi,
                                           .launcher = options_.preferences.mpi_launcher,
                                           .communicator = options_.communicator};
  const auto ranks = static_cast<int>(hosts.size());
  const auto without = [&](const std::string& trouble) -> std::unique_ptr<engine::Engine> {
    if (options_.preferences.engine == "mpi") {
      throw Exception({Code::unsupported, "TUTTI_ENGINE=mpi: " + trouble});
    }
    return engine::make_apart_engine(options_.store, name, me, ranks, trouble);
  };
  // First whether everybody has one: to initialize it is to wait for all.
  const auto at_switch =
      options_.preferences.switches.empty() ? Result<std::size_t>(0) : read_switch(options_.preferences.switches);
  const auto ready = at_switch ? engine::mpi::Library::prepare(wanted) : Status(at_switch.error());
  const auto readiness = value_or_throw(exchange_whereabouts(
      *options_.store, "tutti/mpi-ready/" + name, me, ranks,
      ready ? Whereabouts{.job = "ready"} : Whereabouts{.trouble = ready.error().message}, deadline));
  for (std::size_t rank = 0; rank < readiness.size(); ++rank) {
    if (!readiness[rank].trouble.empty()) {
      return without(fmt::format("rank {}: {}", rank, readiness[rank].trouble));
    }
  }
  const auto library = value_or_throw(engine::mpi::Library::open(wanted, deadline));
  const auto whereabouts = value_or_throw(exchange_whereabouts(
      *options_.store, "tutti/mpi/" + name, me, ranks,
      {.job = library->job(), .address = library->rank(), .in_world = options_.rank, .at_switch = at_switch.value()},
      deadline));
  for (std::size_t rank = 0; rank < whereabouts.size(); ++rank) {
    if (whereabouts[rank].job != whereabouts[0].job) {
      return without(fmt::format("rank {} is in another MPI world than rank 0", rank));
    }
  }
  std::vector<engine::mpi::Resident> residents;
  for (std::size_t rank = 0; rank < whereabouts.size(); ++rank) {
    const bool alone = options_.preferences.engine == "mpi";  // as if it were on a host of its own
    residents.push_back({.host = alone ? fmt::format("{} {}", hosts[rank], rank) : hosts[rank],
                         .at_switch = whereabouts[rank].at_switch,
                         .address = whereabouts[rank].address,
                         .in_world = whereabouts[rank].in_world});
  }
  return value_or_throw(engine::make_mpi_engine({.library = library,
                                                 .store = options_.store,
                                                 .name = name,
                                                 .members = engine::mpi::arrange(residents),
                                                 .rank = me},
                                                deadline));
}

c10::intrusive_ptr<Backend> GroupFactory::make_backend(const std::string& name, Rank me, int size,
                                                       engine::CallSite (*where)()) {
  const auto timeout = options_.timeout;
  BackendOptions options{.timeout = timeout, .where = where};
  if (!options_.memories) {  // threads would have to share their memories with the factory of the split
    options.make_engine = [timeout, preferences = options_.preferences, communicator = options_.communicator,
                           tuning = options_.tuning](c10::intrusive_ptr<c10d::Store> store, Rank rank, int ranks) {
      GroupFactory factory({.store = from_c10d(std::move(store)),
                            .rank = Rank{-1},  // not known here
                            .timeout = timeout,
                            .preferences = preferences,
                            .communicator = communicator,
                            .tuning = tuning});
      return factory.make_engine("split", rank, ranks);
    };
  }
  return c10::make_intrusive<Backend>(make_engine(name, me, size), std::move(options));
}

std::shared_ptr<Group::State> GroupFactory::make(const std::vector<Rank>& members) {
  const auto found = std::find(members.begin(), members.end(), options_.rank);
  require(found != members.end(), "a group is made by its members");
  const auto me = to_rank(static_cast<std::size_t>(found - members.begin()));
  auto state = std::make_shared<Group::State>();
  state->name = next_name(members);
  state->members = members;

  auto backend = make_backend(state->name, me, static_cast<int>(members.size()));
  state->ours = backend.get();
  auto store = c10::make_intrusive<c10d::PrefixStore>(state->name,
                                                      c10::make_intrusive<C10dStore>(options_.store, options_.timeout));
  state->process_group =
      c10::make_intrusive<c10d::ProcessGroup>(std::move(store), to_int(me), static_cast<int>(members.size()));
  state->process_group->setBackend(c10::DeviceType::CPU, c10d::ProcessGroup::BackendType::CUSTOM,
                                   c10::intrusive_ptr<c10d::Backend>(std::move(backend)));
  state->process_group->setDefaultBackend(c10d::ProcessGroup::BackendType::CUSTOM);
  state->process_group->setGroupName(state->name);
  return state;
}

}  // namespace tutti
