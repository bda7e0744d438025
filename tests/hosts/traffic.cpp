// Runs every plan once, counts what ranks really sent, and compares it with the formula; rank 0 prints both as a table.
//   traffic [--cable NAME]    with one rank per host: also what the kernel says that went out by that interface
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>

#include "tutti/comm/backend.h"
#include "tutti/plan/test_formula.h"
#include <tutti/tutti.h>

namespace {

using tutti::Rank;
using tutti::plan::Formula;
using tutti::plan::Op;
using tutti::plan::Request;

/// Divides into whole cache lines among up to eight ranks, so that all pieces are equally long.
constexpr std::int64_t kBlockBytes = std::int64_t{64} * 16800;
constexpr std::int64_t kCount = kBlockBytes / 4;
constexpr Rank kRoot{1};

/// By rank.
using Sent = std::vector<tutti::engine::Links::Sent>;

Sent sent_so_far(const tutti::Group& group) {
  return dynamic_cast<tutti::Backend&>(*group.process_group()->getBackend(torch::kCPU)).sent();
}

void run(const tutti::Group& group, Op op) {
  const auto ranks = group.size();
  const auto one = torch::ones({kCount});
  const auto many = torch::ones({kCount * ranks});
  const bool is_root = group.rank() == kRoot;
  const auto list = is_root ? many.chunk(ranks) : std::vector<at::Tensor>();
  switch (op) {
    case Op::all_reduce: group.all_reduce(one).wait(); break;
    case Op::reduce_scatter: group.reduce_scatter(one, many).wait(); break;
    case Op::all_gather: group.all_gather(many, one).wait(); break;
    case Op::broadcast: group.broadcast(one, kRoot).wait(); break;
    case Op::reduce: group.reduce(one, kRoot).wait(); break;
    case Op::all_to_all: group.all_to_all(torch::empty_like(many), many).wait(); break;
    case Op::gather: group.gather(list, one, kRoot).wait(); break;
    case Op::scatter: group.scatter(one, list, kRoot).wait(); break;
  }
}

/// Ranks of each host, from "mpi (Open MPI v5.0.11) 2+2".
std::vector<std::vector<Rank>> hosts_of(const tutti::Group& group) {
  const auto shape = group.shape();
  std::istringstream sizes(shape.substr(shape.rfind(' ') + 1));
  std::vector<std::vector<Rank>> hosts;
  int next = 0;
  for (std::string size; std::getline(sizes, size, '+');) {
    auto& host = hosts.emplace_back(std::stoul(size));
    for (auto& rank : host) {
      rank = Rank{next++};
    }
  }
  return hosts;
}

/// What the ranks that sent most sent, in blocks. All ranks take part.
Formula most_of(const tutti::Group& group, const Sent& mine) {
  const auto ranks = group.size();
  auto own = torch::empty({ranks, 2}, torch::kInt64);
  for (int peer = 0; peer < ranks; ++peer) {
    own[peer][0] = static_cast<std::int64_t>(mine[static_cast<std::size_t>(peer)].bytes);
    own[peer][1] = static_cast<std::int64_t>(mine[static_cast<std::size_t>(peer)].messages);
  }
  const auto all = torch::empty({ranks * ranks * 2}, torch::kInt64);
  group.all_gather(all, own.flatten()).wait();
  const auto by_link = all.view({ranks, ranks, 2});
  const auto by_rank = by_link.sum(1);
  const auto blocks = [](const at::Tensor& bytes) {
    return static_cast<double>(bytes.max().item<std::int64_t>()) / static_cast<double>(kBlockBytes);
  };
  return {.sent = blocks(by_rank.select(1, 0)),
          .on_a_link = blocks(by_link.select(2, 0)),
          .messages = static_cast<std::uint32_t>(by_rank.select(1, 1).max().item<std::int64_t>())};
}

std::int64_t out_by(const std::string& cable) {
  std::ifstream file("/sys/class/net/" + cable + "/statistics/tx_bytes");
  std::int64_t bytes = -1;
  file >> bytes;
  return bytes;
}

/// What this rank sent, by its own count and by the kernel's: the same but for headers, acknowledgements and greetings.
bool is_like(std::int64_t counted, std::int64_t out) {
  return out >= counted && static_cast<double>(out) <= 1.03 * static_cast<double>(counted) + 100'000;
}

bool is_the_same(const Formula& measured, const Formula& formula) {
  return std::abs(measured.sent - formula.sent) < 1e-9 && std::abs(measured.on_a_link - formula.on_a_link) < 1e-9 &&
         measured.messages == formula.messages;
}

struct Counted {
  Sent sent;             ///< by this rank's links, by peer
  std::int64_t out = 0;  ///< by the kernel
};

Counted run_once(const tutti::Group& group, Op op, const std::string& cable) {
  group.barrier().wait();
  const auto before = sent_so_far(group);
  const auto out_before = out_by(cable);
  run(group, op);
  Counted counted{.sent = sent_so_far(group)};
  group.barrier().wait();
  counted.out = out_by(cable) - out_before;
  for (std::size_t peer = 0; peer < before.size(); ++peer) {
    counted.sent[peer].bytes -= before[peer].bytes;
    counted.sent[peer].messages -= before[peer].messages;
  }
  return counted;
}

/// Whether it sends what it should.
bool measure(const tutti::Group& group, const Request& request, const std::string& cable) {
  const std::string op(to_string(request.op));
  const std::string algorithm(to_string(request.algorithm));
  group.choose(op, algorithm);
  auto counted = run_once(group, request.op, cable);
  for (int again = 0; again < (cable.empty() ? 0 : 3); ++again) {
    // What TCP sends twice, on a machine that is busy, it seldom sends twice again.
    counted.out = std::min(counted.out, run_once(group, request.op, cable).out);
  }
  group.choose(op, "own");
  const auto measured = most_of(group, counted.sent);
  const auto formula = formula_of(request);
  const bool right = is_the_same(measured, formula);
  if (group.rank() == Rank{0}) {
    std::printf("| %s | %s | %.4g | %.0f | %.4g | %.0f | %u | %u |%s\n", op.c_str(), algorithm.c_str(), formula.sent,
                measured.sent * kBlockBytes, formula.on_a_link, measured.on_a_link * kBlockBytes, formula.messages,
                measured.messages, right ? "" : " WRONG");
  }
  std::int64_t own = 0;
  for (const auto& each : counted.sent) {
    own += static_cast<std::int64_t>(each.bytes);
  }
  if (!cable.empty() && !is_like(own, counted.out)) {
    std::printf("rank %d, %s %s: sent %lld bytes, and by %s went %lld\n", to_int(group.rank()), op.c_str(),
                algorithm.c_str(), static_cast<long long>(own), cable.c_str(), static_cast<long long>(counted.out));
    return false;
  }
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string cable = argc == 3 && std::strcmp(argv[1], "--cable") == 0 ? argv[2] : "";
    const auto world = tutti::init();
    const auto& group = world.group();
    if (group.rank() == Rank{0}) {
      std::printf("%s, blocks of %lld bytes; what the rank, and the link, that sends most sends\n",
                  group.shape().c_str(), static_cast<long long>(kBlockBytes));
      std::printf(
          "| operation | algorithm | blocks by a rank | bytes | blocks over a link | bytes | messages | sent |\n");
      std::printf("|---|---|---|---|---|---|---|---|\n");
    }
    const auto hosts = hosts_of(group);
    int wrong = 0;
    int plans = 0;
    for (const auto op : tutti::plan::kEveryOp) {
      for (const auto algorithm : tutti::plan::algorithms_for(op)) {
        if (algorithm == tutti::plan::Algorithm::hybrid && hosts.size() == 1) {
          continue;
        }
        const Request request{.op = op, .algorithm = algorithm, .ranks = group.size(), .root = kRoot, .hosts = hosts};
        wrong += measure(group, request, cable) ? 0 : 1;
        ++plans;
      }
    }
    if (group.rank() == Rank{0}) {
      std::printf("%d plans, %d send something else than their formula says\n", plans, wrong);
    }
    return wrong == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
