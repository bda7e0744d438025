#include "tutti/comm/job.h"

#include <unistd.h>

#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/sha.h>

#include "tutti/comm/exception.h"
#include "tutti/comm/host.h"
#include "tutti/comm/mpi_meeting.h"
#include "tutti/rendezvous/client.h"
#include "tutti/rendezvous/server.h"

namespace tutti {
namespace {

using rendezvous::Address;
using rendezvous::Secret;

Environment merge(Environment environment, const InitOptions& options) {
  if (options.rank || options.world_size) {
    if (!options.rank || !options.world_size) {
      throw Exception({Code::invalid_argument, "init: give both rank and world_size, or neither"});
    }
    if (*options.world_size < 1 || to_int(*options.rank) < 0 || to_int(*options.rank) >= *options.world_size) {
      throw Exception({Code::invalid_argument,
                       fmt::format("init: rank {} in a world of {}", to_int(*options.rank), *options.world_size)});
    }
    environment.place = {.rank = *options.rank,
                         .world_size = *options.world_size,
                         .local_rank = to_int(*options.rank),
                         .local_world_size = *options.world_size};
    // Where the launcher's own store is used, the launcher serves it, whoever chose the rank.
    environment.launcher =
        options.store.empty() && environment.launcher == Launcher::tutti ? Launcher::tutti : Launcher::none;
    if (options.store.empty() && environment.store.empty() && *options.world_size > 1) {
      throw Exception({Code::invalid_argument,
                       "init: rank and world_size need a store to meet at: \"unix:NAME\" on one "
                       "host, \"tcp:HOST:PORT\" with a secret_file between hosts"});
    }
  }
  environment.store = options.store.empty() ? environment.store : options.store;
  environment.secret_file = options.secret_file.empty() ? environment.secret_file : options.secret_file;
  environment.timeout = options.timeout.value_or(environment.timeout);
  return environment;
}

std::optional<Secret> find_secret(const Environment& environment) {
  if (environment.secret_fd && environment.launcher == Launcher::tutti) {
    return value_or_throw(Secret::from_descriptor(*environment.secret_fd));
  }
  if (!environment.secret_file.empty()) {
    return value_or_throw(Secret::from_file(environment.secret_file));
  }
  return std::nullopt;
}

/// A unix name that only ranks of this job, of this user, come to.
Address derived_address(const Environment& environment) {
  const auto text = fmt::format("{} {}", ::geteuid(), value_or_throw(job_identity(environment)));
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return {.kind = Address::Kind::unix_name, .name = fmt::format("tutti-job-{:02x}", fmt::join(digest, ""))};
}

Address find_address(const Environment& environment) {
  if (!environment.store.empty()) {
    return value_or_throw(Address::parse(environment.store));
  }
  if (environment.place.local_world_size == environment.place.world_size) {
    return derived_address(environment);
  }
  throw Exception(
      {Code::invalid_argument,
       fmt::format("init: the job has ranks on several hosts ({} of {} are here) and was started by {}: set "
                   "TUTTI_STORE=tcp:HOST:PORT (a free port on rank 0's host) and TUTTI_SECRET_FILE (the same "
                   "32 or more random bytes on every host, chmod 600), or use `tutti run --hosts`",
                   environment.place.local_world_size, environment.place.world_size, to_string(environment.launcher))});
}

/// Rank 0 serves the store where no launcher does.
std::optional<Rank> serving_rank(const Environment& environment) {
  return environment.launcher == Launcher::tutti ? std::nullopt : std::optional(Rank{0});
}

std::unique_ptr<rendezvous::Server> serve(const Environment& environment, const Address& address,
                                          const std::optional<Secret>& secret) {
  if (serving_rank(environment) != environment.place.rank) {
    return nullptr;
  }
  if (address.kind == Address::Kind::tcp && !secret) {
    throw Exception({Code::invalid_argument, "init: a store at " + address.text() +
                                                 " needs the job's secret: set TUTTI_SECRET_FILE to a file "
                                                 "(chmod 600) with the same 32 or more random bytes on every host"});
  }
  auto server = rendezvous::Server::start({.world_size = environment.place.world_size,
                                           .listen = {address},
                                           .secret = secret ? *secret : value_or_throw(Secret::make()),
                                           .close_when_complete = true,
                                           .log = make_log("tutti", environment.log_level)});
  if (!server && server.error().code == Code::refused) {
    return nullptr;  // somebody serves it: joining will tell whether that is another rank 0
  }
  return value_or_throw(std::move(server));
}

/// Whether ranks can only find each other by MPI: the program brought a communicator, or mpirun put them on several
/// hosts and nobody said where to meet.
bool meets_by_mpi(const Environment& environment, const InitOptions& options) {
  if (options.communicator) {
    return true;
  }
  return environment.store.empty() && environment.place.local_world_size != environment.place.world_size &&
         !environment.preferences.mpi_launcher.empty() && environment.preferences.mpi != "none" &&
         (environment.launcher == Launcher::open_mpi || environment.launcher == Launcher::pmi);
}

Meeting meet_by_mpi(Environment& environment, const InitOptions& options) {
  const auto deadline = Deadline::after_or_never(environment.timeout);
  const auto library = value_or_throw(engine::mpi::Library::open({.wanted = environment.preferences.mpi,
                                                                  .launcher = environment.preferences.mpi_launcher,
                                                                  .communicator = options.communicator},
                                                                 deadline));
  if (library->is_shaky()) {
    warn(make_log("tutti", environment.log_level),
         "MPI was initialized for one thread alone. Tutti calls it from others while operations are under way: call "
         "nothing of MPI meanwhile, or initialize it with MPI_Init_thread and MPI_THREAD_SERIALIZED");
  }
  return value_or_throw(meet_by_mpi(*library, environment, environment.place, deadline));
}

std::shared_ptr<rendezvous::Store> keep(Meeting meeting) {
  const auto kept = std::make_shared<Meeting>(std::move(meeting));
  return {kept, kept->store.get()};
}

}  // namespace

Job join_job(const InitOptions& options) {
  Job job{.environment = merge(value_or_throw(read_environment()), options), .store = nullptr};
  const auto& environment = job.environment;
  if (environment.place.world_size == 1 && environment.store.empty() && !options.communicator) {
    job.store = rendezvous::make_local_store();
    job.alone = true;
    return job;
  }
  if (meets_by_mpi(environment, options)) {
    job.store = keep(meet_by_mpi(job.environment, options));
    return job;
  }
  const auto secret = find_secret(environment);
  const auto address = find_address(environment);
  Meeting met{.server = serve(environment, address, secret), .store = nullptr};
  met.store = value_or_throw(rendezvous::join({.address = address,
                                               .rank = environment.place.rank,
                                               .world_size = environment.place.world_size,
                                               .secret = secret,
                                               .served_by = serving_rank(environment)},
                                              Deadline::after_or_never(environment.timeout)));
  job.store = keep(std::move(met));
  return job;
}

}  // namespace tutti
