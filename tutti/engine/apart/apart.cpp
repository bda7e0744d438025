#include "tutti/engine/apart/apart.h"

#include <mutex>

#include <fmt/format.h>

namespace tutti::engine {
namespace {

class ApartEngine final : public Engine {
 public:
  ApartEngine(std::shared_ptr<rendezvous::Store> store, std::string group, Rank rank, int ranks, std::string why)
      : store_(std::move(store)), group_(std::move(group)), rank_(rank), ranks_(ranks), why_(std::move(why)) {}

  std::string_view name() const override { return "apart"; }
  Rank rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  std::shared_ptr<Reach> reach() const override { return nullptr; }
  Status can(Op op) const override { return op == Op::barrier ? Status() : Status(cannot(to_string(op))); }

  Status run(const Call& call, Deadline deadline) override {
    if (auto error = broken()) {
      return *error;
    }
    if (auto possible = can(call.op); !possible) {
      return possible;
    }
    auto met = meet(deadline);
    if (!met) {
      abort(met.error());  // the others may have met without this rank
    }
    return met;
  }

  plan::GroupShape shape() const override { return {.engine = "apart", .hosts = {ranks()}}; }
  Status choose(Op op, const OpChoices&) override { return cannot(to_string(op)); }
  std::vector<Links::Sent> sent() const override { return std::vector<Links::Sent>(static_cast<std::size_t>(ranks_)); }
  void send(Rank, std::uint64_t, ConstBlock, Deadline, Done done) override { done(cannot("send")); }
  void receive(Rank, std::uint64_t, Block, Deadline, Received received) override { received(cannot("receive")); }

  void abort(const Error& why) override {
    const std::scoped_lock lock(mutex_);
    broken_ = broken_ ? broken_ : why;
  }
  std::optional<Error> broken() const override {
    const std::scoped_lock lock(mutex_);
    return broken_;
  }
  bool on_own_thread() const override { return false; }

 private:
  /// The last one to come opens a key that the others wait for, in slices, so that an abort ends the wait.
  Status meet(Deadline deadline) {
    const auto key = fmt::format("tutti/apart/{}/{}", group_, ++meetings_);
    const auto came = store_->add(key, 1, deadline);
    if (!came) {
      return came.error();
    }
    if (came.value() == ranks_) {
      return store_->set(key + "/open", "1", deadline);
    }
    for (;;) {
      const auto slice = Deadline::after(std::min<Deadline::Clock::duration>(deadline.remaining(), kSlice));
      auto opened = store_->wait({key + "/open"}, slice);
      if (opened || opened.error().code != Code::timed_out) {
        return opened;
      }
      if (auto error = broken()) {
        return *error;
      }
      if (deadline.expired()) {
        return Error{Code::timed_out, fmt::format("barrier #{} of group '{}': the deadline passed before all of its {} "
                                                  "ranks came",
                                                  meetings_, group_, ranks_)};
      }
    }
  }

  static constexpr std::chrono::milliseconds kSlice{200};

  Error cannot(std::string_view what) const {
    return {Code::unsupported,
            fmt::format("{}: the ranks of group '{}' are on different hosts, and there is no MPI between "
                        "them ({}); start the job with mpirun, or use a group of one host's ranks",
                        what, group_, why_)};
  }

  std::shared_ptr<rendezvous::Store> store_;
  std::string group_;
  Rank rank_;
  int ranks_;
  std::string why_;
  std::uint64_t meetings_ = 0;
  mutable std::mutex mutex_;
  std::optional<Error> broken_;
};

}  // namespace

std::unique_ptr<Engine> make_apart_engine(std::shared_ptr<rendezvous::Store> store, const std::string& group, Rank rank,
                                          int ranks, const std::string& why) {
  return std::make_unique<ApartEngine>(std::move(store), group, rank, ranks, why);
}

}  // namespace tutti::engine
