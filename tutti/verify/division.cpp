#include "tutti/verify/division.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti::verifying {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Exception({Code::invalid_argument, "verify: " + why}); }

std::vector<std::vector<Rank>> slices_of(const MeshLayout& layout, const std::vector<std::string>& axes) {
  std::vector<std::vector<Rank>> slices;
  std::vector<bool> seen(static_cast<std::size_t>(layout.size()), false);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) {
      for (const auto rank : slices.emplace_back(value_or_throw(layout.slice(to_rank(i), axes)))) {
        seen[to_index(rank)] = true;
      }
    }
  }
  return slices;
}

std::vector<std::int64_t> rows_of(const Rows& batch, std::size_t ranks, const VerifyOptions& options) {
  const bool ragged = std::any_of(batch.begin(), batch.end(),
                                  [&](const auto& one) { return one.dim() == 0 || one.size(0) != batch[0].size(0); });
  if (batch.empty() || ragged) {
    refuse("a batch is tensors with as many rows each");
  }
  const auto total = batch[0].size(0);
  auto rows = options.rows.empty() ? divide_evenly(total, static_cast<std::int64_t>(ranks)) : options.rows;
  if (rows.size() != ranks || std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) != total ||
      *std::min_element(rows.begin(), rows.end()) < options.microbatches) {
    refuse(fmt::format("{} rows cannot be divided as [{}] over {} ranks with {} microbatches each", total,
                       fmt::join(rows, ", "), ranks, options.microbatches));
  }
  return rows;
}

}  // namespace

Rows part_of(const Rows& rows, const std::vector<std::int64_t>& sizes, std::size_t part) {
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < part; ++i) {
    begin += sizes[i];
  }
  Rows result;
  for (const auto& one : rows) {
    result.push_back(one.narrow(0, begin, sizes[part]));
  }
  return result;
}

std::vector<std::int64_t> divide_evenly(std::int64_t rows, std::int64_t parts) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < parts; ++i) {
    sizes.push_back(rows / parts + (i < rows % parts ? 1 : 0));
  }
  return sizes;
}

std::vector<std::string> averaged_axes(const Mesh& mesh, const VerifyOptions& options) {
  std::vector<std::string> axes;
  for (const auto& axis : mesh.axes()) {
    if (std::find(options.axes.begin(), options.axes.end(), axis.name) != options.axes.end()) {
      axes.push_back(axis.name);
    }
  }
  if (axes.empty()) {
    refuse(fmt::format("mesh {} has none of the axes {}", mesh.text(), fmt::join(options.axes, ", ")));
  }
  return axes;
}

Division::Division(const Rows& batch, const Mesh& mesh, const VerifyOptions& options)
    : layout(value_or_throw(MeshLayout::make(mesh.axes(), mesh.size()))),
      axes(averaged_axes(mesh, options)),
      slices(slices_of(layout, axes)),
      rows(rows_of(batch, slices[0].size(), options)),
      shares(static_cast<std::size_t>(layout.size())) {
  const auto own = layout.rank(mesh.coordinate());
  for (const auto& slice : slices) {
    for (std::size_t i = 0; i < slice.size(); ++i) {
      shares[to_index(slice[i])] = static_cast<double>(rows[i]) / static_cast<double>(batch[0].size(0));
      place = slice[i] == own ? i : place;
    }
  }
}

}  // namespace tutti::verifying
