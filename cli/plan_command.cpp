#include "cli/plan_command.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/parse.h"
#include "cli/plan_cost_command.h"
#include "cli/plan_typed.h"
#include "tutti/plan/picture.h"
#include "tutti/plan/prove.h"
#include "tutti/plan/traffic.h"

namespace tutti::cli {
namespace {

using plan::Request;

constexpr int kFlawFound = 1;

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

int show(const TypedPlan& typed) {
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
    if (typed.choice.json) {
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
  if (typed.choice.json) {
    fmt::print("{}\n", all.dump());
  }
  return 0;
}

int check(const TypedPlan& typed) {
  const auto range = parse_range(typed.ranks);
  if (!range) {
    return complain("tutti plan check", range.error().message);
  }
  std::vector<std::string> ops{typed.choice.op};
  if (typed.choice.op == "all") {
    ops = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "gather", "scatter"};
  }
  auto all = nlohmann::json::array();
  int proved = 0;
  for (const auto& op : ops) {
    for (int ranks = range.value().first; ranks <= range.value().second; ++ranks) {
      auto one = typed;
      one.choice.op = op;
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
  if (typed.choice.json) {
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
  TypedPlan typed;
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
