// What ranks on several hosts do when something goes wrong; each says how it ended, in one line. The first word names
// what:
//   sums            sums of many sizes and types, right to the last bit
//   hard-sums SEED  reproducible sums of addends that are hard to add, divided over ranks by lot
//   groups          operations on many groups at once
//   passing N       N groups one after the other
//   large           a message of more than 2^31 bytes
//   long            long messages by every plan, and then sums
//   many            hundreds of sums that go inside of hosts after they went between them
//   kill RANK       that rank dies in the middle, and the others' sums end with an error
//   kill-rounding RANK  the same with sums of microbatches
//   lost-message RANK  that rank dies, and the others wait for a message from it
//   late RANK       that rank comes five seconds after a deadline of one
//   mismatch RANK   that rank's tensor is longer; afterwards all go on
//   divisor RANK    that rank divides a sum of microbatches by another number; afterwards all go on
//   choices RANK    those from that rank on have chosen other ways to add up; afterwards all go on
//   message RANK    that rank gets a shorter message than it expects, while the others add up
//   no-mpi          there is no MPI to add up with
//   abort RANK      that rank gives up, while the others wait for it
//   until-broken    sums without end, until something outside breaks them
#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>

#include "tests/hosts/hard_sums.h"
#include "tests/hosts/many_groups.h"
#include <tutti/tutti.h>

namespace {

using namespace std::chrono_literals;

/// Also into a file of the rank's own in the folder ACROSS_HOSTS_OUT: a launcher whose job fails may drop what ranks
/// say.
void say(const tutti::World& world, const std::string& text) {
  const auto line = "rank " + std::to_string(tutti::to_int(world.rank())) + ": " + text + "\n";
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
  if (const char* folder = std::getenv("ACROSS_HOSTS_OUT")) {
    std::ofstream(std::string(folder) + "/rank-" + std::to_string(tutti::to_int(world.rank())), std::ios::app) << line;
  }
}

void say_end(const tutti::World& world, const tutti::Exception& error) {
  say(world, "ended with " + std::string(tutti::to_string(error.code())) + " because of rank " +
                 std::to_string(error.rank() ? tutti::to_int(*error.rank()) : -1) + ": " + error.what());
}

/// Where a rank crashes is said, in the same file, before it does: some MPIs do by themselves.
class CrashNotes {
 public:
  explicit CrashNotes(const tutti::World& world) {
    const char* folder = std::getenv("ACROSS_HOSTS_OUT");
    if (folder == nullptr) {
      return;
    }
    const auto path = std::string(folder) + "/rank-" + std::to_string(tutti::to_int(world.rank()));
    file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    void* first = nullptr;
    backtrace(&first, 1);  // loads what it needs
    std::signal(SIGSEGV, [](int signal) {
      constexpr std::string_view kWords = "crashed in ";
      constexpr int kOwn = 2;  // frames of this handler
      void* frames[kOwn + 8];
      const int count = backtrace(frames, static_cast<int>(std::size(frames)));
      if (write(file_, kWords.data(), kWords.size()) > 0) {
        backtrace_symbols_fd(frames + kOwn, std::max(0, count - kOwn), file_);
      }
      std::signal(signal, SIG_DFL);
      std::raise(signal);
    });
  }

 private:
  static inline int file_ = -1;
};

template <class Function>
int expect_failure(const tutti::World& world, Function&& function) {
  try {
    function();
  } catch (const tutti::Exception& error) {
    say_end(world, error);
    return 0;
  }
  say(world, "nothing failed");
  return 1;
}

int sums(const tutti::World& world) {
  const auto& group = world.group();
  const int ranks = world.size();
  for (const auto dtype : {torch::kFloat32, torch::kFloat64, torch::kInt64, torch::kBFloat16, torch::kHalf}) {
    for (const std::int64_t count : {1, 3, 1003, 65'537, 1'000'003}) {
      auto tensor = (torch::arange(count) % 7 + tutti::to_int(world.rank()) % 3).to(dtype);
      auto expected = torch::zeros({count}, torch::kFloat64);
      for (int rank = 0; rank < ranks; ++rank) {
        expected += (torch::arange(count) % 7 + rank % 3).to(torch::kFloat64);
      }
      group.all_reduce(tensor).wait();
      if (!torch::equal(tensor.to(torch::kFloat64), expected)) {
        say(world, "wrong sum of " + std::to_string(count));
        return 1;
      }
    }
  }
  say(world, "all sums right");
  return 0;
}

/// Long messages by every way there is, again and again: how they go changes when they are found to take long.
int long_messages(const tutti::World& world) {
  const auto& group = world.group();
  const auto rank = tutti::to_int(world.rank());
  for (const auto* const plan : {"own", "ring/4", "tree/8", "hybrid/4", "halving_doubling", "direct"}) {
    group.choose("all_reduce", plan);
    for (const std::int64_t count : {1'000'003, 1'000'003, 15'361, 200'001}) {
      auto tensor = (torch::arange(count) % 1013 + rank).to(torch::kFloat32);
      const auto expected = world.size() * (torch::arange(count) % 1013).to(torch::kFloat32) +
                            static_cast<double>(world.size() * (world.size() - 1) / 2);
      group.all_reduce(tensor).wait();
      auto copy = rank == 1 ? expected : torch::zeros({count});
      group.broadcast(copy, tutti::Rank{1}).wait();
      if (!torch::equal(tensor, expected) || !torch::equal(copy, expected)) {
        say(world, std::string("wrong by ") + plan + ", " + std::to_string(count));
        return 1;
      }
    }
  }
  return sums(world);
}

int large_message(const tutti::World& world) {
  constexpr std::int64_t kCount = (std::int64_t{1} << 28) + 1543;  // of 8 bytes
  const bool first = world.rank() == tutti::Rank{0};
  auto numbers = first ? torch::arange(kCount, torch::kInt64) : torch::zeros({kCount}, torch::kInt64);
  if (first) {
    world.group().send(numbers, tutti::Rank{1}).wait();
  } else {
    world.group().receive(numbers, tutti::Rank{0}).wait();
    const auto* const got = numbers.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < kCount; ++i) {
      if (got[i] != i) {
        say(world, "wrong from " + std::to_string(i) + " on");
        return 1;
      }
    }
  }
  say(world, "all sums right");
  return 0;
}

int different_choices(const tutti::World& world, bool odd) {
  const auto& group = world.group();
  constexpr std::pair<const char*, const char*> kPairs[]{
      {"tree", "ring"}, {"at_once", "ring/2"}, {"own", "library"}, {"in_slices", "at_once"}, {"own", "own,4Ki:direct"}};
  for (const auto& [one, other] : kPairs) {
    group.choose("all_reduce", odd ? other : one);
    for (const std::int64_t count : {2, 1003, 100'003}) {
      auto tensor = torch::ones({count});
      if (expect_failure(world, [&] { group.all_reduce(tensor).wait(); }) != 0) {
        say(world, std::string(one) + " and " + other + " went well with " + std::to_string(count));
        return 1;
      }
    }
  }
  group.choose("all_reduce", "own");
  return sums(world);
}

int short_message(const tutti::World& world, int who) {
  const auto& group = world.group();
  const auto rank = tutti::to_int(world.rank());
  return expect_failure(world, [&] {
    auto tensor = torch::ones({100});
    group.barrier().wait();
    if (rank == 0) {
      group.send(tensor.narrow(0, 0, 10), tutti::Rank{who}).wait();
    } else if (rank == who) {
      group.receive(tensor, tutti::Rank{0}).wait();
    }
    group.all_reduce(tensor).wait();
  });
}

/// All others wait for a message from who dies; and then want one more.
int lost_message(const tutti::World& world, int who) {
  const auto& group = world.group();
  group.barrier().wait();
  if (tutti::to_int(world.rank()) == who) {
    std::this_thread::sleep_for(200ms);
    std::raise(SIGKILL);
  }
  auto tensor = torch::ones({10});
  for (int again = 0; again < 2; ++again) {
    if (const int code = expect_failure(world, [&] { group.receive(tensor, tutti::Rank{who}, 5).wait(); }); code != 0) {
      return code;
    }
  }
  std::this_thread::sleep_for(500ms);  // what launchers do about a death must not end who is left
  return 0;
}

int run(const tutti::World& world, const std::string& what, int who) {
  const auto& group = world.group();
  const bool me = tutti::to_int(world.rank()) == who;
  auto tensor = torch::ones({100'003});
  const auto set_timeout = [&](std::chrono::milliseconds timeout) {
    group.process_group()->getBackend(torch::kCPU)->setTimeout(timeout);
  };
  if (what == "sums") {
    return sums(world);
  }
  if (what == "hard-sums" || what == "groups" || what == "passing") {
    const auto wrong = what == "groups"    ? tutti::tests::wrong_in_groups(world)
                       : what == "passing" ? tutti::tests::wrong_in_passing_groups(world, who)
                                           : tutti::tests::wrong_hard_sum(world, static_cast<unsigned>(who));
    say(world, wrong.empty() ? "all sums right" : wrong);
    return wrong.empty() ? 0 : 1;
  }
  if (what == "many") {
    group.choose("all_reduce", "halving_doubling");
    auto longer = torch::ones({40'009});
    for (int i = 0; i < 500; ++i) {
      group.all_reduce(longer, tutti::ReduceOp::max).wait();
    }
    return sums(world);
  }
  if (what == "long") {
    return long_messages(world);
  }
  if (what == "large") {
    return large_message(world);
  }
  if (what == "choices") {
    return different_choices(world, tutti::to_int(world.rank()) >= who);
  }
  if (what == "no-mpi") {
    return expect_failure(world, [&] { group.all_reduce(tensor).wait(); });
  }
  if (what == "message") {
    return short_message(world, who);
  }
  if (what == "lost-message") {
    return lost_message(world, who);
  }
  if (what == "kill" || what == "kill-rounding") {
    const std::vector<at::Tensor> addends{torch::ones({1'000'003}), torch::ones({1'000'003})};
    const auto operation = [&] {
      what == "kill" ? group.all_reduce(tensor).wait() : group.round_sums(addends[0], {.addends = addends}).wait();
    };
    return expect_failure(world, [&] {
      auto begun = std::chrono::steady_clock::now();
      try {
        for (int i = 0;; ++i) {
          if (me && i == 3) {
            std::raise(SIGKILL);
          }
          begun = std::chrono::steady_clock::now();
          operation();
        }
      } catch (const tutti::Exception&) {
        const auto waited = std::chrono::steady_clock::now() - begun;
        say(world, "heard of it after " + std::to_string(waited / 1ms) + " ms");
        std::this_thread::sleep_for(500ms);  // what launchers do about a death must not end who is left
        throw;
      }
    });
  }
  if (what == "late") {
    group.barrier().wait();
    set_timeout(1s);
    if (me) {
      std::this_thread::sleep_for(5s);
    }
    return expect_failure(world, [&] { group.all_reduce(tensor).wait(); });
  }
  if (what == "mismatch") {
    auto mine = torch::ones({me ? 19 : 17});
    if (expect_failure(world, [&] { group.all_reduce(mine).wait(); }) != 0) {
      return 1;
    }
    return sums(world);
  }
  if (what == "divisor") {
    for (const std::int64_t count : {17, 1'000'003}) {
      auto mine = torch::ones({count});
      if (expect_failure(world, [&] { group.round_sums(mine, {.addends = {mine}}, me ? 5 : 4).wait(); }) != 0) {
        return 1;
      }
    }
    return sums(world);
  }
  if (what == "abort") {
    group.barrier().wait();
    if (me) {
      std::this_thread::sleep_for(200ms);
      group.abort();
      return 0;
    }
    return expect_failure(world, [&] { group.all_reduce(tensor).wait(); });
  }
  set_timeout(5s);
  say(world, "going");
  return expect_failure(world, [&] {
    for (;;) {
      group.all_reduce(tensor).wait();
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto world = tutti::init();
    const CrashNotes notes(world);
    say(world, "the group is " + world.group().shape());
    return run(world, argc > 1 ? argv[1] : "sums", argc > 2 ? std::atoi(argv[2]) : -1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
