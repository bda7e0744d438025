// A rank of a long run: random operations, types, sizes and memory, on several groups from several threads at once,
// each result compared with one that is computed here alone.
//   tutti run -n 3 -- soak --seconds 600 --seed 7

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "tutti/comm/symmetric.h"
#include "tutti/comm/world.h"

namespace {

using torch::Tensor;
using tutti::Group;
using tutti::Rank;
using tutti::ReduceOp;

struct Options {
  double seconds = 5;
  unsigned seed = 1;
};

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    if (std::strcmp(words[i], "--seconds") == 0) {
      options.seconds = std::stod(words[i + 1]);
    } else if (std::strcmp(words[i], "--seed") == 0) {
      options.seed = static_cast<unsigned>(std::stoul(words[i + 1]));
    }
  }
  return options;
}

/// One thread's part: its own group, its own stream of operations, drawn alike on every rank.
class Worker {
 public:
  Worker(Group group, unsigned seed) : group_(std::move(group)), blocking_(group_.blocking()), random_(seed) {}

  /// Until rank 0's time is over, on which all agree every few operations.
  void run(std::chrono::steady_clock::time_point end) {
    for (;;) {
      auto over = torch::tensor(std::chrono::steady_clock::now() > end ? 1 : 0);
      group_.broadcast(over).wait();
      if (over.item<int>() == 1) {
        return;
      }
      for (int i = 0; i < 20; ++i) {
        one();
        ++operations;
      }
    }
  }

  std::uint64_t operations = 0;

 private:
  unsigned next(unsigned below) { return static_cast<unsigned>(random_() % below); }

  torch::Dtype type() {
    constexpr std::array kTypes{torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16,    torch::kInt,
                                torch::kLong,  torch::kShort,  torch::kByte, torch::kComplexFloat};
    return kTypes[next(kTypes.size())];
  }

  /// Small whole numbers that every rank can compute for every other.
  static Tensor values(int64_t count, int rank, int salt, torch::Dtype dtype) {
    return ((torch::arange(count) * 7 + 3 * rank + salt) % 5).to(dtype);
  }

  Tensor placed(const Tensor& contents, unsigned where) {
    if (where == 0) {
      return contents.clone();
    }
    if (where == 1) {  // every second column of something wider
      auto wide = torch::zeros({contents.numel(), 2}, contents.options());
      auto column = wide.select(1, 0);
      column.copy_(contents);
      return column;
    }
    auto tensor = tutti::symmetric_empty(contents.sizes(), contents.options(), group_);
    tensor.copy_(contents);
    return tensor;
  }

  void expect(const Tensor& got, const Tensor& wanted, const char* what) const {
    if (!torch::equal(got, wanted)) {
      throw std::runtime_error(std::string("wrong result of ") + what + " in group " + group_.name());
    }
  }

  void one() {
    const auto dtype = type();
    const int ranks = group_.size();
    const int me = tutti::to_int(group_.rank());
    const auto count = static_cast<int64_t>(next(1U << next(19)));
    const auto salt = static_cast<int>(next(100));
    const auto where = next(3);
    const auto& group = next(2) == 0 ? group_ : blocking_;
    const Rank root{static_cast<std::int32_t>(next(static_cast<unsigned>(ranks)))};
    const auto sum = [&] {
      auto total = torch::zeros({count}, torch::kLong);
      for (int rank = 0; rank < ranks; ++rank) {
        total += values(count, rank, salt, torch::kLong);
      }
      return total.to(dtype);
    };
    auto mine = placed(values(count, me, salt, dtype), where);
    switch (next(8)) {
      case 0: group.all_reduce(mine).wait(); return expect(mine, sum(), "all_reduce");
      case 1:
        group.broadcast(mine, root).wait();
        return expect(mine, values(count, tutti::to_int(root), salt, dtype), "broadcast");
      case 2:
        group.reduce(mine, root).wait();
        return expect(mine, group.rank() == root ? sum() : values(count, me, salt, dtype), "reduce");
      case 3: {
        auto all = placed(torch::zeros({count * ranks}, dtype), where);
        group.all_gather(all, mine).wait();
        for (int rank = 0; rank < ranks; ++rank) {
          expect(all.slice(0, rank * count, (rank + 1) * count), values(count, rank, salt, dtype), "all_gather");
        }
        return;
      }
      case 4: {
        std::vector<Tensor> parts(static_cast<std::size_t>(ranks), values(count, me, salt, dtype));
        auto all = placed(torch::cat(parts), where);
        group.reduce_scatter(mine, all).wait();
        return expect(mine, sum(), "reduce_scatter");
      }
      case 5: return all_to_all(group, count, salt, dtype, where);
      case 6: {
        std::vector<Tensor> several;
        for (int i = 0; i < 3; ++i) {
          several.push_back(placed(values(count, me, salt, dtype), where));
        }
        group.all_reduce(several).wait();
        return expect(several[2], sum(), "coalesced all_reduce");
      }
      default: return ring(count, salt, dtype);
    }
  }

  /// As many rows to each rank as both their numbers say.
  void all_to_all(const Group& group, int64_t count, int salt, torch::Dtype dtype, unsigned where) {
    const int ranks = group_.size();
    const int me = tutti::to_int(group_.rank());
    const auto rows = [&](int from, int to) { return count / (1 + (from + 2 * to + salt) % 5); };
    std::vector<int64_t> in_splits;
    std::vector<int64_t> out_splits;
    std::vector<Tensor> in;
    std::vector<Tensor> wanted;
    for (int peer = 0; peer < ranks; ++peer) {
      in_splits.push_back(rows(me, peer));
      out_splits.push_back(rows(peer, me));
      in.push_back(values(in_splits.back(), me, salt + peer, dtype));
      wanted.push_back(values(out_splits.back(), peer, salt + me, dtype));
    }
    const auto expected = torch::cat(wanted);
    auto out = placed(torch::zeros_like(expected), where);
    group.all_to_all(out, placed(torch::cat(in), where), out_splits, in_splits).wait();
    expect(out, expected, "all_to_all");
  }

  void ring(int64_t count, int salt, torch::Dtype dtype) {
    const int ranks = group_.size();
    const int me = tutti::to_int(group_.rank());
    const int before = (me + ranks - 1) % ranks;
    if (ranks == 1) {
      return;
    }
    auto got = torch::zeros({count}, dtype);
    auto sent = group_.send(values(count, me, salt, dtype), Rank{(me + 1) % ranks}, salt);
    group_.receive(got, Rank{before}, salt).wait();
    sent.wait();
    expect(got, values(count, before, salt, dtype), "send and receive");
  }

  Group group_;
  Group blocking_;
  std::mt19937 random_;
};

/// Bytes of this process that are its own or shared, in memory.
long resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") {
      long kib = 0;
      status >> kib;
      return kib;
    }
  }
  return 0;
}

int soak(const Options& options) {
  const auto world = tutti::init();
  torch::set_num_threads(1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                          std::chrono::duration<double>(options.seconds));
  // The world twice, and a smaller group: several in flight from several threads.
  std::vector<Group> groups{world.group()};
  std::vector<Rank> all;
  for (int rank = 0; rank < world.size(); ++rank) {
    all.push_back(Rank{rank});
  }
  groups.push_back(*world.group().subgroup(all));
  if (auto part = world.group().split(tutti::to_int(world.rank()) / 2)) {
    groups.push_back(*part);
  }
  std::vector<Worker> workers;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    // Ranks of one group draw the same; groups of one colour differ by their first member.
    workers.emplace_back(groups[i], options.seed + 1000 * static_cast<unsigned>(i) +
                                        static_cast<unsigned>(tutti::to_int(groups[i].members()[0])));
  }
  std::atomic<bool> failed = false;
  std::vector<std::thread> threads;
  for (auto& worker : workers) {
    threads.emplace_back([&worker, &failed, end] {
      try {
        worker.run(end);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "soak: %s\n", error.what());
        failed = true;
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  std::uint64_t operations = 0;
  for (const auto& worker : workers) {
    operations += worker.operations;
  }
  std::printf("%llu operations on %zu groups, %ld MiB resident\n", static_cast<unsigned long long>(operations),
              groups.size(), resident_kib() / 1024);
  return failed ? 1 : 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return soak(parse(count, words));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soak: %s\n", error.what());
    return 1;
  }
}
