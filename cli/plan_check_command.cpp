#include "cli/plan_check_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/parse.h"
#include "cli/plan_typed.h"
#include "tutti/plan/picture.h"
#include "tutti/plan/plan_json.h"
#include "tutti/plan/proof_size.h"
#include "tutti/plan/prove.h"

namespace tutti::cli {
namespace {

using plan::Request;

constexpr auto kCheckCommand = "tutti plan check";
constexpr int kFlawFound = 1;

struct TypedCheck {
  TypedPlan plan;
  std::string from;
};

/// What was found out about plans, one after the other.
class Verdicts {
 public:
  explicit Verdicts(bool draws) : draws_(draws) {}

  /// Of a file with several, which one is part of what is said.
  void number() { numbered_ = true; }

  /// Whether it is proved.
  bool add(const plan::NamedPlan& named) {
    const auto& made = named.plan;
    const auto flaw = plan::prove(made);
    rows_.push_back({{"op", to_string(made.shape.op)},
                     {"algorithm", named.algorithm},
                     {"ranks", made.shape.ranks},
                     {"proved", !flaw}});
    if (draws_ && (rows_.size() == 1 || (flaw && sentences_.empty()))) {
      picture_ = plan::draw(made, flaw ? &*flaw : nullptr);
    }
    if (!flaw) {
      return true;
    }
    flawed_ = flawed_ || flaw->kind != plan::Flaw::Kind::undecided;
    auto& row = rows_.back();
    row["kind"] = to_string(flaw->kind);
    row["rank"] = to_int(flaw->rank);
    if (flaw->step) {
      const auto& span = made.programs[to_index(flaw->rank)].steps[*flaw->step].span;
      row["step"] = *flaw->step;
      row["span"] = {{"buffer", to_string(span.buffer)}, {"begin", span.begin}, {"count", span.count}};
    }
    row["sentence"] = flaw->sentence;
    const auto which = numbered_ ? fmt::format("plan {}: ", rows_.size()) : "";
    sentences_.push_back(fmt::format("{}{} {}, {} ranks: {}: {}", which, named.algorithm, to_string(made.shape.op),
                                     made.shape.ranks, to_string(flaw->kind), flaw->sentence));
    return false;
  }

  const nlohmann::ordered_json& rows() const { return rows_; }
  const std::vector<std::string>& sentences() const { return sentences_; }
  /// One for each that is not proved: because of a flaw, or since that takes too long.
  int exit_code() const { return flawed_ ? kFlawFound : sentences_.empty() ? 0 : kUsageError; }
  /// Of the first with a flaw, or of the only one; empty when there is no such.
  std::string picture() const { return sentences_.empty() && rows_.size() > 1 ? "" : picture_; }

 private:
  bool draws_;
  bool numbered_ = false;
  bool flawed_ = false;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
  std::vector<std::string> sentences_;
  std::string picture_;
};

/// On a terminal, since a range may take long: how far it is. What comes next is written over it.
void show_progress(const std::string& text) {
  if (::isatty(STDERR_FILENO) == 1) {
    std::fputs(fmt::format("\r{:<60}\r", text).c_str(), stderr);
  }
}

Result<std::vector<Request>> all_requests(const TypedPlan& typed, int ranks) {
  std::vector<std::string> ops{typed.choice.op};
  if (typed.choice.op == "all") {
    ops = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "gather", "scatter"};
  }
  std::vector<Request> all;
  for (const auto& op : ops) {
    auto one = typed;
    one.choice.op = op;
    auto requests = requests_of(one, ranks);
    if (!requests) {
      return requests.error();
    }
    std::move(requests.value().begin(), requests.value().end(), std::back_inserter(all));
  }
  return all;
}

/// Ends with the first that has a flaw.
Status check_built(const TypedPlan& typed, Verdicts& verdicts) {
  const auto range = parse_range(typed.ranks);
  if (!range) {
    return range.error();
  }
  const auto [first, last] = range.value();
  // The largest first: nobody waits for smaller ones to learn that these are too large.
  if (const auto largest = all_requests(typed, last); largest && first < last) {
    for (const auto& request : largest.value()) {
      if (const auto plan = plan::build_provable(request); !plan) {
        return plan.error();
      }
    }
  }
  for (int ranks = first; ranks <= last; ++ranks) {
    const auto requests = all_requests(typed, ranks);
    if (!requests) {
      return requests.error();
    }
    for (const auto& request : requests.value()) {
      if (last > first) {
        show_progress(
            fmt::format("{} ranks of {}: {} {}", ranks, last, to_string(request.algorithm), to_string(request.op)));
      }
      auto made = plan::build_provable(request);
      if (!made) {
        return made.error();
      }
      if (!verdicts.add({std::string(to_string(request.algorithm)), std::move(made).value()})) {
        show_progress("");
        return {};
      }
    }
  }
  show_progress("");
  return {};
}

Status check_read(const std::string& path, Verdicts& verdicts) {
  const auto plans = plan::read_plans(path);
  if (!plans) {
    return plans.error();
  }
  if (plans.value().size() > 1) {
    verdicts.number();
  }
  for (const auto& named : plans.value()) {
    verdicts.add(named);
  }
  return {};
}

Status write_picture(const TypedCheck& typed, const Verdicts& verdicts) {
  if (typed.plan.svg.empty()) {
    return {};
  }
  auto* const said = typed.plan.choice.json ? stderr : stdout;
  if (verdicts.picture().empty()) {
    fmt::print(said, "nothing drawn: of several plans, none has a flaw\n");
    return {};
  }
  if (auto written = write_file(typed.plan.svg, verdicts.picture()); !written) {
    return written;
  }
  fmt::print(said, "drawn in {}\n", typed.plan.svg);
  return {};
}

int check(const TypedCheck& typed) {
  Verdicts verdicts(!typed.plan.svg.empty());
  if (auto done = typed.from.empty() ? check_built(typed.plan, verdicts) : check_read(typed.from, verdicts); !done) {
    return complain(kCheckCommand, done.error().message);
  }
  if (typed.plan.choice.json) {
    fmt::print("{}\n", verdicts.rows().dump());
  } else if (verdicts.sentences().empty()) {
    fmt::print(
        "{} plans proved: each contribution once, no unordered access, no deadlock without buffers, the same bits "
        "on every rank\n",
        verdicts.rows().size());
  }
  for (const auto& sentence : verdicts.sentences()) {
    complain(kCheckCommand, sentence);
  }
  if (auto written = write_picture(typed, verdicts); !written) {
    const int end = complain(kCheckCommand, written.error().message);
    return verdicts.exit_code() == kFlawFound ? kFlawFound : end;
  }
  return verdicts.exit_code();
}

}  // namespace

std::function<int()> declare_plan_check(CLI::App& app) {
  const auto typed = std::make_shared<TypedCheck>();
  declare(app, typed->plan);
  app.get_option("algorithm")->description("ring, tree, double_tree, ..., or all (all)");
  app.get_option("--op")->description("all_reduce, reduce_scatter, all_gather, ..., or all (all_reduce)");
  app.get_option("--ranks")->description("Number of ranks, or a range such as 2..64 (4)");
  app.get_option("--svg")->description(
      "Write a picture to this file: of the first plan with a flaw, or of the only one");
  app.get_option("--json")->description("Print the verdict on each plan as JSON");
  app.add_option("--from", typed->from,
                 "Prove the plans of a file, as 'tutti plan show --json' writes them, maybe changed by hand");
  app.footer(
      "Examples:\n"
      "  tutti plan check                                  every all_reduce of 4 ranks\n"
      "  tutti plan check all --op all -n 2..64            every plan that there is\n"
      "  tutti plan show ring -n 3 --json > plan.json      a plan to change by hand, and then\n"
      "  tutti plan check --from plan.json --svg plan.svg  to prove, and to see where it is wrong\n"
      "\n"
      "A flaw is said in a sentence: which rank, which step, which pieces.\n"
      "Exit code: 0; 1 when a plan has a flaw; 2 when the command, or the file, cannot be understood,\n"
      "or a proof takes too long.");
  return [typed, &app] {
    for (const auto* other :
         {"algorithm", "--op", "--ranks", "--root", "--chunks", "--hosts", "--inner", "--outer", "--leaders"}) {
      if (!typed->from.empty() && app.get_option(other)->count() > 0) {
        return complain(kCheckCommand, fmt::format("--from: the file says which plans, not {}", other));
      }
    }
    if (const auto good = typed->from.empty() ? check_meaning(app, typed->plan.choice) : Status{}; !good) {
      return complain(kCheckCommand, good.error().message);
    }
    return check(*typed);
  };
}

}  // namespace tutti::cli
