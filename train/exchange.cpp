#include "train/exchange.h"

#include <algorithm>

#include <torch/types.h>

namespace tutti::train {

std::vector<std::vector<double>> gather(const Group& group, std::span<const double> own) {
  const auto length = static_cast<std::int64_t>(own.size());
  const auto row = torch::empty({length}, torch::kDouble);
  std::copy(own.begin(), own.end(), row.data_ptr<double>());
  const auto all = torch::empty({group.size(), length}, torch::kDouble);
  group.blocking().all_gather(all.view(-1), row).wait();
  std::vector<std::vector<double>> rows;
  for (const auto* at = all.data_ptr<double>(); rows.size() < static_cast<std::size_t>(group.size()); at += length) {
    rows.emplace_back(at, at + length);
  }
  return rows;
}

bool all_agree(const Group& group, bool own) {
  const auto rows = gather(group, std::vector<double>{own ? 1.0 : 0.0});
  return std::all_of(rows.begin(), rows.end(), [](const auto& row) { return row[0] != 0; });
}

}  // namespace tutti::train
