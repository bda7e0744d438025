#include "cli/plan_cost_command.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/parse.h"
#include "cli/plan_typed.h"
#include "tutti/base/environment.h"
#include "tutti/plan/known_network.h"
#include "tutti/plan/network_json.h"
#include "tutti/plan/price_map.h"
#include "tutti/plan/tuning.h"

namespace tutti::cli {
namespace {

using plan::Price;
using plan::Request;

constexpr auto kCommand = "tutti plan cost";
constexpr std::string_view kInner = "direct";  // unless one is typed

struct Typed {
  PlanChoice choice{
      .chunks = 0, .inner = std::string(kInner), .outer = {}, .leaders = 0};  // nothing: the best of several
  std::string ranks = "16";
  std::string topology;
  std::string bytes = "25Mi";
  int ranks_of_host = 0;
  std::string plot;
};

/// What was typed, understood.
struct Asked {
  plan::Network network;
  std::vector<Request> requests;
  std::size_t bytes = 0;
  plan::PriceOptions options;
};

Result<std::vector<Request>> requests_of(const Typed& typed, int ranks, const plan::Network& network) {
  const auto op = plan::parse_op(typed.choice.op);
  if (!op) {
    return op.error();
  }
  const auto inner = parse_inner(typed.choice);
  if (!inner) {
    return inner.error();
  }
  const auto algorithms = chosen_algorithms(typed.choice, plan::comparable(op.value(), plan::Fabric(network, ranks)));
  if (!algorithms) {
    return algorithms.error();
  }
  std::vector<Request> requests;
  for (const auto algorithm : algorithms.value()) {
    requests.push_back({.op = op.value(), .algorithm = algorithm, .ranks = ranks});
    requests.back().inner = inner.value();
    requests.back().chunks = std::max(chunks_for(typed.choice, algorithm, op.value()), 1U);
  }
  const bool wants_hybrid = !typed.choice.outer.empty() || typed.choice.leaders > 0 || typed.choice.inner != kInner;
  const auto is_hybrid = [](const Request& request) { return request.algorithm == plan::Algorithm::hybrid; };
  if (wants_hybrid && std::none_of(requests.begin(), requests.end(), is_hybrid)) {
    return Error{Code::invalid_argument,
                 fmt::format("--inner, --outer and --leaders are of hybrid, and {} ranks of network '{}' have none",
                             ranks, network.name)};
  }
  return requests;
}

Result<plan::PriceOptions> options_of(const Typed& typed) {
  plan::PriceOptions options{.leaders = typed.choice.leaders};
  if (typed.choice.chunks > 0) {
    options.chunks = {typed.choice.chunks};
  }
  if (!typed.choice.outer.empty()) {
    const auto outer = parse_outer(typed.choice);
    if (!outer) {
      return outer.error();
    }
    options.outer = outer.value();
    options.leaders = std::max(options.leaders, 1U);
  }
  return options;
}

/// A file, or what was found on machines like this one.
Result<plan::Network> network_of(const std::string& topology) {
  if (topology.empty()) {
    return Error{Code::invalid_argument, "--topology: a file such as clusters/fat-tree.json is needed, or 'here'"};
  }
  if (topology != "here" && topology != "here-hosts") {
    return plan::read_network(topology);
  }
  const auto preferences = read_preferences();
  if (!preferences) {
    return preferences.error();
  }
  const auto machine = plan::read_topology();
  if (!machine) {
    return machine.error();
  }
  const auto path =
      plan::network_file(preferences.value().tuning, plan::machine_name(machine.value()), topology != "here");
  if (path.empty() || !std::filesystem::exists(path)) {
    return Error{Code::not_found,
                 fmt::format("--topology {}: links were not timed yet on a machine like this one; 'tutti bench --links "
                             "-n RANKS'{} does that",
                             topology, topology == "here" ? "" : ", run by mpirun over the hosts,")};
  }
  return plan::read_network(path);
}

Result<Asked> understand(const Typed& typed) {
  auto network = network_of(typed.topology);
  if (!network) {
    return network.error();
  }
  if (typed.ranks_of_host > 0) {
    network.value().levels[0].members = typed.ranks_of_host;
  }
  const auto ranks = parse_ranks(typed.ranks);
  if (!ranks) {
    return ranks.error();
  }
  if (auto good = plan::check(network.value(), ranks.value()); !good) {
    return Error{Code::invalid_argument, fmt::format("--ranks {}: {}", typed.ranks, good.error().message)};
  }
  const auto bytes = parse_bytes("--bytes", typed.bytes);
  if (!bytes) {
    return bytes.error();
  }
  auto requests = requests_of(typed, ranks.value(), network.value());
  if (!requests) {
    return requests.error();
  }
  auto options = options_of(typed);
  if (!options) {
    return options.error();
  }
  return Asked{std::move(network).value(), std::move(requests).value(), bytes.value(), std::move(options).value()};
}

nlohmann::json to_json(const Price& price) {
  nlohmann::json json{{"algorithm", to_string(price.request.algorithm)},
                      {"chunks", price.request.chunks},
                      {"seconds", price.seconds},
                      {"bus_bytes_per_second", price.bus_bandwidth},
                      {"messages_of_a_rank", price.messages},
                      {"how", to_string(price.how)},
                      {"spent",
                       {{"meeting", price.spent.meeting},
                        {"latency", price.spent.latency},
                        {"transfer", price.spent.transfer},
                        {"sharing", price.spent.sharing},
                        {"messages", price.spent.messages},
                        {"reduction", price.spent.reduction}}}};
  if (price.request.algorithm == plan::Algorithm::hybrid) {
    json["inner"] = to_string(price.request.inner);
    json["outer"] = to_string(price.request.outer);
    json["leaders"] = price.request.leaders;
  }
  return json;
}

void print_table(const Asked& asked, const std::vector<Price>& prices) {
  const auto& first = prices.front().request;
  fmt::print("{} of {}, {} ranks, {}\n\n", to_string(first.op), plan::bytes_text(static_cast<double>(asked.bytes)),
             first.ranks, asked.network.name);
  fmt::print("{:<36} {:>6} {:>9} {:>9} {:>9}  {:<12} {}\n", "algorithm", "chunks", "time", "bus GB/s", "messages",
             "how", "spent on");
  for (const auto& price : prices) {
    fmt::print("{:<36} {:>6} {:>9} {:>9.3f} {:>9.0f}  {:<12} {}\n", plan::name_of(price.request), price.request.chunks,
               plan::seconds_text(price.seconds), price.bus_bandwidth / 1e9, price.messages, to_string(price.how),
               describe(price.spent));
  }
}

Status write_plot(const Typed& typed, const Asked& asked) {
  const auto map = plan::map_prices(asked.requests, asked.network, asked.options);
  if (!map) {
    return map.error();
  }
  return write_file(typed.plot, plan::draw(map.value()));
}

int cost(const Typed& typed) {
  const auto asked = understand(typed);
  if (!asked) {
    return complain(kCommand, asked.error().message);
  }
  std::vector<Price> prices;
  for (const auto& request : asked.value().requests) {
    auto price = plan::cheapest(request, asked.value().bytes, asked.value().network, asked.value().options);
    if (!price) {
      return complain(kCommand, price.error().message);
    }
    prices.push_back(std::move(price).value());
  }
  std::stable_sort(prices.begin(), prices.end(), [](const Price& a, const Price& b) { return a.seconds < b.seconds; });
  if (!typed.plot.empty()) {
    if (auto written = write_plot(typed, asked.value()); !written) {
      return complain(kCommand, written.error().message);
    }
  }
  if (typed.choice.json) {
    auto rows = nlohmann::json::array();
    for (const auto& price : prices) {
      rows.push_back(to_json(price));
    }
    fmt::print("{}\n", nlohmann::json{{"op", typed.choice.op},
                                      {"ranks", asked.value().requests.front().ranks},
                                      {"bytes", asked.value().bytes},
                                      {"network", asked.value().network.name},
                                      {"prices", std::move(rows)}}
                           .dump());
  } else {
    print_table(asked.value(), prices);
  }
  return 0;
}

}  // namespace

std::function<int()> declare_plan_cost(CLI::App& app) {
  const auto typed = std::make_shared<Typed>();
  declare_choice(app, typed->choice);
  app.add_option("--algorithm", typed->choice.algorithm, "One, or all (all)");
  app.add_option("-n,--ranks", typed->ranks, "Number of ranks (16)");
  app.add_option(
      "--topology", typed->topology,
      "What to price on: a file such as clusters/fat-tree.json, or what 'tutti bench --links' found on machines "
      "like this one: here (on one host), here-hosts (between hosts)");
  app.add_option("--ranks-of-host", typed->ranks_of_host, "How many ranks a host has (as the file says)")
      ->check(CLI::Range(1, kMostPlanRanks));
  app.add_option("--bytes", typed->bytes, "Of a block: what one rank contributes or gets; Ki, Mi, Gi (25Mi)");
  app.add_option("--chunks", typed->choice.chunks,
                 "Into how many parts what moves at once is divided (the best of several)")
      ->check(CLI::Range(1U, plan::kMostChunks));
  app.add_option("--outer", typed->choice.outer, "Of hybrid, between hosts (the best of several)");
  app.add_option("--leaders", typed->choice.leaders,
                 "Of hybrid: ranks of a host that talk to others (1 with --outer, else the better of 1 and all)")
      ->check(CLI::Range(1, kMostPlanRanks));
  app.add_option("--plot", typed->plot, "Write a picture to this SVG: which is quickest by size and number of ranks");
  app.footer(
      "Example:\n"
      "  tutti plan cost --algorithm all --ranks 16384 --topology clusters/fat-tree.json --bytes 25Mi\n"
      "\n"
      "The quickest first. Long plans are not simulated whole but extrapolated or estimated, which the table says.\n"
      "Exit code: 0; 2 when the command cannot be understood, or the network has no room for the ranks.");
  return [typed, &app] {
    const auto good = check_meaning(app, typed->choice);
    return good ? cost(*typed) : complain(kCommand, good.error().message);
  };
}

}  // namespace tutti::cli
