#include "cli/plan_command.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/parse.h"
#include "cli/plan_cost_command.h"
#include "tutti/plan/algorithms.h"
#include "tutti/plan/picture.h"
#include "tutti/plan/prove.h"
#include "tutti/plan/traffic.h"

namespace tutti::cli {
namespace {

using plan::Algorithm;
using plan::Request;

constexpr int kFlawFound = 1;

/// What is typed; both subcommands understand all of it.
struct Typed {
  std::string algorithm = "all";
  std::string op = "all_reduce";
  std::string ranks = "4";
  int root = 0;
  unsigned chunks = 1;
  std::string hosts;
  std::string inner = "direct";
  std::string outer = "halving_doubling";
  unsigned leaders = 1;
  std::string svg;
  bool json = false;
};

void declare(CLI::App& app, Typed& typed) {
  app.add_option("algorithm", typed.algorithm, "ring, tree, double_tree, recursive_doubling, ...");
  app.add_option("--op", typed.op, "all_reduce, reduce_scatter, all_gather, broadcast, ... (all_reduce)");
  app.add_option("-n,--ranks", typed.ranks, "Number of ranks (4); for check, also a range such as 2..64");
  app.add_option("--root", typed.root, "Of broadcast, reduce, gather and scatter (0)");
  app.add_option("--chunks", typed.chunks, "Into how many parts what moves at once is divided (1)");
  app.add_option("--hosts", typed.hosts, "Of hybrid: ranks of each host, e.g. 4,4 (two hosts)");
  app.add_option("--inner", typed.inner, "Of hybrid, inside of a host: direct, ring, tree (direct)");
  app.add_option("--outer", typed.outer, "Of hybrid, between hosts: any other all_reduce (halving_doubling)");
  app.add_option("--leaders", typed.leaders, "Of hybrid: ranks of a host that talk to other hosts (1)");
  app.add_option("--svg", typed.svg, "Write a picture to this file: ranks down, time across");
  app.add_flag("--json", typed.json, "Print JSON");
}

std::optional<int> to_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// "8" or "2..64".
Result<std::pair<int, int>> parse_range(const std::string& text) {
  const auto dots = text.find("..");
  const auto first = to_number(text.substr(0, dots));
  const auto last = dots == std::string::npos ? first : to_number(text.substr(dots + 2));
  if (!first || !last || *first < 1 || *last < *first) {
    return Error{Code::invalid_argument, fmt::format("--ranks {}: a number, or a range such as 2..64", text)};
  }
  return std::pair(*first, *last);
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
  std::vector<std::vector<Rank>> hosts;
  int next = 0;
  for (const auto size : sizes) {
    auto& host = hosts.emplace_back();
    for (int i = 0; i < size; ++i) {
      host.push_back(Rank{next++});
    }
  }
  if (next != ranks) {
    return Error{Code::invalid_argument,
                 fmt::format("--hosts {}: that is {} ranks, and there are {}", text, next, ranks)};
  }
  return hosts;
}

/// One request for each algorithm that is meant.
Result<std::vector<Request>> requests_of(const Typed& typed, int ranks) {
  const auto op = plan::parse_op(typed.op);
  const auto inner = plan::parse_algorithm(typed.inner);
  const auto outer = plan::parse_algorithm(typed.outer);
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
  std::vector<Algorithm> algorithms = plan::algorithms_for(op.value());
  if (typed.algorithm != "all") {
    const auto algorithm = plan::parse_algorithm(typed.algorithm);
    if (!algorithm) {
      return algorithm.error();
    }
    algorithms = {algorithm.value()};
  }
  std::vector<Request> requests;
  for (const auto algorithm : algorithms) {
    requests.push_back({.op = op.value(),
                        .algorithm = algorithm,
                        .ranks = ranks,
                        .root = Rank{plan::has_root(op.value()) ? typed.root : 0},
                        .chunks = typed.chunks,
                        .hosts = hosts.value(),
                        .inner = inner.value(),
                        .outer = outer.value(),
                        .leaders = typed.leaders});
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

nlohmann::json to_json(plan::Span span) {
  return {{"buffer", to_string(span.buffer)}, {"begin", span.begin}, {"count", span.count}};
}

nlohmann::json to_json(const Request& request, const plan::Plan& made) {
  auto ranks = nlohmann::json::array();
  for (const auto& program : made.programs) {
    auto steps = nlohmann::json::array();
    for (const auto& step : program.steps) {
      nlohmann::json one{{"span", to_json(step.span)}, {"after", program.after_of(step)}};
      if (step.kind == plan::Step::Kind::combine) {
        one["kind"] = "combine";
        one["sources"] = nlohmann::json::array();
        for (const auto& source : program.sources_of(step)) {
          one["sources"].push_back(to_json(source));
        }
      } else {
        one["kind"] = step.kind == plan::Step::Kind::send ? "send" : "receive";
        one["peer"] = to_int(step.peer);
      }
      steps.push_back(std::move(one));
    }
    ranks.push_back({{"scratch_pieces", program.scratch_pieces}, {"steps", std::move(steps)}});
  }
  return {{"op", to_string(request.op)},
          {"algorithm", to_string(request.algorithm)},
          {"pieces", made.shape.pieces},
          {"ranks", std::move(ranks)}};
}

void print_plan(const Request& request, const plan::Plan& made) {
  const auto traffic = plan::count_traffic(made);
  fmt::print(
      "{} {}, {} ranks: a block in {} pieces; no rank sends more than {} messages, {:.4g} blocks; "
      "{} messages wait for each other\n",
      to_string(request.algorithm), to_string(request.op), request.ranks, made.shape.pieces, traffic.most_messages,
      traffic.most_sent, traffic.longest_chain);
  for (std::size_t rank = 0; rank < made.programs.size(); ++rank) {
    const auto& program = made.programs[rank];
    fmt::print("\nrank {}\n", rank);
    for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
      const auto text = plan::describe(made, to_rank(rank), i);
      const auto after = program.after_of(program.steps[i]);
      fmt::print("  {:3}  {}{}\n", i, text.substr(text.find(": ") + 2),
                 after.empty() ? "" : fmt::format("   (after {})", fmt::join(after, ", ")));
    }
  }
}

int show(const Typed& typed) {
  const auto range = parse_range(typed.ranks);
  if (!range || range.value().first != range.value().second) {
    return complain("tutti plan show", range ? "--ranks: one number" : range.error().message);
  }
  const auto requests = requests_of(typed, range.value().first);
  if (!requests) {
    return complain("tutti plan show", requests.error().message);
  }
  if (!typed.svg.empty() && requests.value().size() > 1) {
    return complain("tutti plan show", "--svg: name one algorithm");
  }
  auto all = nlohmann::json::array();
  for (const auto& request : requests.value()) {
    const auto made = plan::build(request).value();
    if (typed.json) {
      all.push_back(to_json(request, made));
    } else {
      print_plan(request, made);
    }
    if (!typed.svg.empty()) {
      if (auto written = write_file(typed.svg, plan::draw(made)); !written) {
        return complain("tutti plan show", written.error().message);
      }
    }
  }
  if (typed.json) {
    fmt::print("{}\n", all.dump());
  }
  return 0;
}

int check(const Typed& typed) {
  const auto range = parse_range(typed.ranks);
  if (!range) {
    return complain("tutti plan check", range.error().message);
  }
  std::vector<std::string> ops{typed.op};
  if (typed.op == "all") {
    ops = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "gather", "scatter"};
  }
  auto all = nlohmann::json::array();
  int proved = 0;
  for (const auto& op : ops) {
    for (int ranks = range.value().first; ranks <= range.value().second; ++ranks) {
      auto one = typed;
      one.op = op;
      const auto requests = requests_of(one, ranks);
      if (!requests) {
        return complain("tutti plan check", requests.error().message);
      }
      for (const auto& request : requests.value()) {
        const auto made = plan::build(request).value();
        const auto flaw = plan::prove(made);
        all.push_back({{"op", op}, {"algorithm", to_string(request.algorithm)}, {"ranks", ranks}, {"proved", !flaw}});
        if (flaw) {
          if (!typed.svg.empty()) {
            (void)write_file(typed.svg, plan::draw(made, &*flaw));
          }
          fmt::print(stderr, "tutti plan check: {} {}, {} ranks: {}: {}\n", to_string(request.algorithm), op, ranks,
                     to_string(flaw->kind), flaw->sentence);
          return kFlawFound;
        }
        ++proved;
      }
    }
  }
  if (typed.json) {
    fmt::print("{}\n", all.dump());
  } else {
    fmt::print(
        "{} plans proved: each contribution once, no unordered access, no deadlock without buffers, the same bits "
        "on every rank\n",
        proved);
  }
  return 0;
}

}  // namespace

int plan_command(const std::vector<std::string>& arguments) {
  CLI::App app("Plans of collectives: what every rank sends, receives and adds", "tutti plan");
  Typed typed;
  auto* show_app = app.add_subcommand("show", "Print a plan, or draw it");
  auto* check_app = app.add_subcommand("check", "Prove plans: right, free of races and of deadlocks");
  auto* cost_app =
      app.add_subcommand("cost", "Price plans on a network that need not be here: time, and what it goes to");
  const auto cost = declare_plan_cost(*cost_app);
  declare(*show_app, typed);
  declare(*check_app, typed);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  tutti plan show ring -n 4                         what every rank does, step by step\n"
      "  tutti plan show double_tree -n 8 --svg tree.svg   the same as a picture\n"
      "  tutti plan show hybrid -n 8 --hosts 4,4 --outer ring --leaders 2\n"
      "  tutti plan check all --op all -n 2..64            prove every plan that there is\n"
      "  tutti plan cost --ranks 16384 --topology clusters/fat-tree.json --bytes 25Mi\n"
      "\n"
      "Exit code: 0; 1 when a plan has a flaw; 2 when the command cannot be understood.");
  if (const int end = parse(app, "tutti plan", arguments); end >= 0) {
    return end;
  }
  if (cost_app->parsed()) {
    return cost();
  }
  return show_app->parsed() ? show(typed) : check(typed);
}

}  // namespace tutti::cli
