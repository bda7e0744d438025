#include "tutti/comm/world.h"

#include <exception>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "tutti/comm/c10d_store.h"
#include "tutti/comm/group_factory.h"
#include "tutti/rendezvous/local_store.h"

namespace tutti {

/// The order matters: groups say goodbye to each other before the rank leaves the store.
struct World::State {
  Environment environment;
  std::shared_ptr<GroupFactory> factory;
  std::optional<Group> group;
};

namespace {

std::vector<Rank> ranks_of(int size) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(Rank{rank});
  }
  return ranks;
}

World make_world(std::shared_ptr<World::State> state, GroupFactory::Options options) {
  state->factory = std::make_shared<GroupFactory>(std::move(options));
  auto group = state->factory->make(ranks_of(state->environment.place.world_size));
  group->factory = state->factory;
  state->group.emplace(std::move(group));
  return World(std::move(state));
}

/// What every rank of a run_ranks threw, in the order of time.
class Failures {
 public:
  void add(std::exception_ptr failure) {
    const std::scoped_lock lock(mutex_);
    failures_.push_back(std::move(failure));
  }

  /// Throws the one that caused the others: the first that does not speak of another rank's failure.
  void rethrow() {
    for (const auto& failure : failures_) {
      if (!is_consequence(failure)) {
        std::rethrow_exception(failure);
      }
    }
    if (!failures_.empty()) {
      std::rethrow_exception(failures_.front());
    }
  }

 private:
  static bool is_consequence(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const Exception& exception) {
      return exception.code() == Code::peer_lost || exception.code() == Code::aborted;
    } catch (...) {
      return false;
    }
  }

  std::mutex mutex_;
  std::vector<std::exception_ptr> failures_;
};

}  // namespace

const Group& World::group() const { return *state_->group; }
int World::local_rank() const { return state_->environment.place.local_rank; }
int World::local_size() const { return state_->environment.place.local_world_size; }
Launcher World::launcher() const { return state_->environment.launcher; }

c10::intrusive_ptr<c10d::Store> World::store() const {
  return c10::make_intrusive<C10dStore>(state_->factory->options().store, state_->environment.timeout);
}

World init(const InitOptions& options) {
  auto job = join_job(options);
  auto state = std::make_shared<World::State>();
  state->environment = std::move(job.environment);
  GroupFactory::Options made_from{
      .store = std::move(job.store),
      .rank = state->environment.place.rank,
      .timeout = state->environment.timeout,
      .preferences = state->environment.preferences,
      .communicator = options.communicator,
      .tuning = std::make_shared<TuningCache>(state->environment.preferences.tuning, state->environment.log_level)};
  if (job.alone) {
    made_from.memories = std::make_shared<engine::LocalMemories>();
  }
  return make_world(std::move(state), std::move(made_from));
}

void run_ranks(int ranks, const std::function<void(World&)>& function) {
  if (ranks < 1) {
    throw Exception(
        {Code::invalid_argument, fmt::format("run_ranks: {} ranks asked for; at least 1 is needed", ranks)});
  }
  const auto store = rendezvous::make_local_store();
  const auto memories = std::make_shared<engine::LocalMemories>();
  const auto environment = value_or_throw(read_environment());
  const auto tuning = std::make_shared<TuningCache>(environment.preferences.tuning, environment.log_level);
  Failures failures;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          auto state = std::make_shared<World::State>();
          state->environment = environment;
          state->environment.launcher = Launcher::none;
          state->environment.place = {
              .rank = Rank{rank}, .world_size = ranks, .local_rank = rank, .local_world_size = ranks};
          auto world = make_world(std::move(state), {.store = store,
                                                     .memories = memories,
                                                     .rank = Rank{rank},
                                                     .timeout = environment.timeout,
                                                     .preferences = environment.preferences,
                                                     .tuning = tuning});
          function(world);
        } catch (...) {
          failures.add(std::current_exception());
          const Error error{Code::peer_lost, fmt::format("rank {} ended with an exception", rank), Rank{rank}};
          memories->fail(error);
          store->fail(error);
        }
      });
    }
  }
  failures.rethrow();
}

}  // namespace tutti
