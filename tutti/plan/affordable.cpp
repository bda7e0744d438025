#include "tutti/plan/affordable.h"

#include <algorithm>

#include "tutti/plan/price.h"

namespace tutti::plan {
namespace {

std::vector<std::vector<Rank>> ranks_by_host(const GroupShape& shape) {
  std::vector<std::vector<Rank>> hosts;
  int next = 0;
  for (const auto ranks : shape.hosts) {
    auto& members = hosts.emplace_back();
    for (int i = 0; i < ranks; ++i) {
      members.push_back(Rank{next++});
    }
  }
  return hosts;
}

}  // namespace

std::vector<std::optional<Choice>> affordable(std::vector<std::optional<Choice>> candidates, Op op,
                                              const GroupShape& shape, std::size_t bytes, Network network,
                                              double times) {
  const auto differs = [&](int ranks) { return ranks != shape.hosts.front(); };
  if (std::any_of(shape.hosts.begin(), shape.hosts.end(), differs)) {
    return candidates;
  }
  network.levels[0].members = shape.hosts.front();
  const auto hosts = ranks_by_host(shape);
  std::vector<double> prices;  // 0: not known
  for (const auto& candidate : candidates) {
    const bool is_plan = candidate && candidate->kind == Choice::Kind::plan;
    const auto priced = is_plan ? price(request_of(*candidate, op, hosts), bytes, network)
                                : Result<Price>(Error{Code::unsupported, "no plan"});
    prices.push_back(priced ? priced.value().seconds : 0);
  }
  double least = 0;
  for (const auto seconds : prices) {
    least = seconds > 0 && (least == 0 || seconds < least) ? seconds : least;
  }
  std::vector<std::optional<Choice>> kept;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (prices[i] <= times * least) {
      kept.push_back(candidates[i]);
    }
  }
  return kept;
}

}  // namespace tutti::plan
