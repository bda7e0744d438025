#include "cli/plan_command.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/parse.h"
#include "cli/plan_check_command.h"
#include "cli/plan_cost_command.h"
#include "cli/plan_typed.h"
#include "tutti/plan/picture.h"
#include "tutti/plan/plan_json.h"
#include "tutti/plan/proof_size.h"
#include "tutti/plan/prove.h"
#include "tutti/plan/traffic.h"

namespace tutti::cli {
namespace {

using plan::Request;

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

int show(const CLI::App& app, const TypedPlan& typed) {
  const auto range = parse_range(typed.ranks);
  if (!range || range.value().first != range.value().second) {
    return complain("tutti plan show", range ? "--ranks: one number" : range.error().message);
  }
  if (auto good = check_meaning(app, typed.choice); !good) {
    return complain("tutti plan show", good.error().message);
  }
  const auto requests = requests_of(typed, range.value().first);
  if (!requests) {
    return complain("tutti plan show", requests.error().message);
  }
  if (!typed.svg.empty() && requests.value().size() > 1) {
    return complain("tutti plan show", "--svg: name one algorithm");
  }
  std::vector<plan::NamedPlan> all;
  for (const auto& request : requests.value()) {
    auto made = plan::build_provable(request);
    if (!made) {
      return complain("tutti plan show", made.error().message);
    }
    all.push_back({std::string(to_string(request.algorithm)), std::move(made).value()});
  }
  std::size_t steps = 0;
  for (const auto& named : all) {
    for (const auto& program : named.plan.programs) {
      steps += program.steps.size();
    }
  }
  constexpr std::size_t kMostSteps = 750'000;  // each takes about a kB until it is written
  if (typed.choice.json && steps > kMostSteps) {
    return complain(
        "tutti plan show",
        fmt::format("--json: {} steps, {} at most: fewer ranks or chunks, or one algorithm", steps, kMostSteps));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& made = all[i].plan;
    if (!typed.choice.json) {
      print_plan(requests.value()[i], made);
    }
    if (!typed.svg.empty()) {
      if (auto written = write_file(typed.svg, plan::draw(made)); !written) {
        return complain("tutti plan show", written.error().message);
      }
      fmt::print(typed.choice.json ? stderr : stdout, "{}drawn in {}\n", typed.choice.json ? "" : "\n", typed.svg);
    }
  }
  if (typed.choice.json) {
    fmt::print("{}\n", plan::to_json(all));
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
  const auto check = declare_plan_check(*check_app);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  tutti plan show ring -n 4                         what every rank does, step by step\n"
      "  tutti plan show double_tree -n 8 --svg tree.svg   the same as a picture\n"
      "  tutti plan show hybrid -n 8 --hosts 4,4 --outer ring --leaders 2\n"
      "  tutti plan check all --op all -n 2..64            prove every plan that there is\n"
      "  tutti plan check --from plan.json                 prove a plan that somebody else wrote\n"
      "  tutti plan cost --ranks 16384 --topology clusters/fat-tree.json --bytes 25Mi\n"
      "\n"
      "Exit code: 0; 1 when a plan has a flaw; 2 when the command cannot be understood.");
  if (const int end = parse(app, "tutti plan", arguments); end >= 0) {
    return end;
  }
  if (cost_app->parsed()) {
    return cost();
  }
  return show_app->parsed() ? show(*show_app, typed) : check();
}

}  // namespace tutti::cli
