#include "cli/plan_typed.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace tutti::cli {
namespace {

using plan::Algorithm;
using plan::Request;

std::optional<int> to_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

bool is_typed(const CLI::App& app, const char* name) {
  const auto* option = app.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

/// "4,4": the first four ranks, and the next four. Nothing typed: as even as can be, over two hosts.
Result<std::vector<std::vector<Rank>>> parse_hosts(const std::string& text, int ranks) {
  std::vector<int> sizes;
  if (text.empty()) {
    sizes = ranks == 1 ? std::vector{1} : std::vector{(ranks + 1) / 2, ranks / 2};
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    const auto size = to_number(text.substr(begin, end - begin));
    if (!size || *size < 1) {
      return Error{Code::invalid_argument, fmt::format("--hosts {}: ranks of each host, e.g. 4,4", text)};
    }
    sizes.push_back(*size);
    begin = end + 1;
  }
  const auto all = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (all != ranks) {
    return Error{Code::invalid_argument,
                 fmt::format("--hosts {}: that is {} ranks, and there are {}", text, all, ranks)};
  }
  std::vector<std::vector<Rank>> hosts;
  int next = 0;
  for (const auto size : sizes) {
    auto& host = hosts.emplace_back();
    for (int i = 0; i < size; ++i) {
      host.push_back(Rank{next++});
    }
  }
  return hosts;
}

}  // namespace

void declare_choice(CLI::App& app, PlanChoice& choice) {
  app.add_option("--op", choice.op, "all_reduce, reduce_scatter, all_gather, broadcast, ... (all_reduce)");
  app.add_option("--inner", choice.inner, "Of hybrid, inside of a host: direct, ring, tree (direct)");
  app.add_flag("--json", choice.json, "Print JSON");
}

Status check_meaning(const CLI::App& app, const PlanChoice& choice) {
  const bool any_op = choice.op == "all" && app.get_name() == "check";
  const auto op = plan::parse_op(choice.op);
  if (!op && !any_op) {
    return op.error();
  }
  const bool hybrid = (any_op || op.value() == plan::Op::all_reduce) &&
                      (choice.algorithm == "all" || choice.algorithm == to_string(Algorithm::hybrid));
  for (const auto* option : {"--hosts", "--inner", "--outer", "--leaders"}) {
    if (!hybrid && is_typed(app, option)) {
      return Error{Code::invalid_argument,
                   fmt::format("{}: of hybrid all_reduce alone, not of {} {}", option, choice.algorithm, choice.op)};
    }
  }
  if (!any_op && !plan::has_root(op.value()) && is_typed(app, "--root")) {
    return Error{Code::invalid_argument,
                 fmt::format("--root: of broadcast, reduce, gather and scatter, not of {}", choice.op)};
  }
  return {};
}

Result<Algorithm> parse_inner(const PlanChoice& choice) {
  return plan::parse_one_of(choice.inner, plan::algorithms_inside_hosts(), "--inner: inside of a host");
}

Result<Algorithm> parse_outer(const PlanChoice& choice) {
  return plan::parse_one_of(choice.outer, plan::algorithms_between_hosts(), "--outer: between hosts");
}

Result<int> parse_ranks(const std::string& text) {
  const auto ranks = to_number(text);
  if (!ranks || *ranks < 1 || *ranks > kMostPlanRanks) {
    return Error{Code::invalid_argument, fmt::format("--ranks {}: a number from 1 to {}", text, kMostPlanRanks)};
  }
  return *ranks;
}

unsigned chunks_for(const PlanChoice& choice, Algorithm algorithm, plan::Op op) {
  return choice.algorithm == "all" && choice.chunks > 1 && !plan::takes_chunks(algorithm, op) ? 1 : choice.chunks;
}

Result<std::vector<Algorithm>> chosen_algorithms(const PlanChoice& choice, std::vector<Algorithm> all) {
  if (choice.algorithm == "all") {
    return all;
  }
  const auto algorithm = plan::parse_algorithm(choice.algorithm);
  if (!algorithm) {
    return algorithm.error();
  }
  return std::vector{algorithm.value()};
}

void declare(CLI::App& app, TypedPlan& typed) {
  app.add_option("algorithm", typed.choice.algorithm, "ring, tree, double_tree, recursive_doubling, ... or all (all)");
  declare_choice(app, typed.choice);
  app.add_option("-n,--ranks", typed.ranks, "Number of ranks (4)");
  app.add_option("--root", typed.root, "Of broadcast, reduce, gather and scatter (0)");
  app.add_option("--chunks", typed.choice.chunks, "Into how many parts what moves at once is divided (1)");
  app.add_option("--hosts", typed.hosts, "Of hybrid: ranks of each host, e.g. 4,4 (two hosts)");
  app.add_option("--outer", typed.choice.outer, "Of hybrid, between hosts: any other all_reduce (halving_doubling)");
  app.add_option("--leaders", typed.choice.leaders, "Of hybrid: ranks of a host that talk to other hosts (1)");
  app.add_option("--svg", typed.svg, "Write a picture to this file: ranks down, time across");
}

Result<std::pair<int, int>> parse_range(const std::string& text) {
  const auto dots = text.find("..");
  const auto first = parse_ranks(text.substr(0, dots));
  const auto last = dots == std::string::npos ? first : parse_ranks(text.substr(dots + 2));
  if (!first || !last || last.value() < first.value()) {
    return Error{Code::invalid_argument,
                 fmt::format("--ranks {}: a number from 1 to {}, or a range such as 2..64", text, kMostPlanRanks)};
  }
  return std::pair(first.value(), last.value());
}

Result<std::vector<Request>> requests_of(const TypedPlan& typed, int ranks) {
  const auto op = plan::parse_op(typed.choice.op);
  const auto inner = parse_inner(typed.choice);
  const auto outer = parse_outer(typed.choice);
  const auto hosts = parse_hosts(typed.hosts, ranks);
  if (!op) {
    return op.error();
  }
  if (!inner || !outer) {
    return inner ? outer.error() : inner.error();
  }
  if (!hosts) {
    return hosts.error();
  }
  const auto algorithms = chosen_algorithms(typed.choice, plan::algorithms_for(op.value()));
  if (!algorithms) {
    return algorithms.error();
  }
  std::vector<Request> requests;
  for (const auto algorithm : algorithms.value()) {
    requests.push_back({.op = op.value(),
                        .algorithm = algorithm,
                        .ranks = ranks,
                        .root = Rank{plan::has_root(op.value()) ? typed.root : 0},
                        .chunks = chunks_for(typed.choice, algorithm, op.value()),
                        .hosts = hosts.value(),
                        .inner = inner.value(),
                        .outer = outer.value(),
                        .leaders = typed.choice.leaders});
    if (auto good = plan::check(requests.back()); !good) {
      return good.error();
    }
  }
  return requests;
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) {
    return system_error(fmt::format("cannot write {}", path), errno);
  }
  return {};
}

}  // namespace tutti::cli
