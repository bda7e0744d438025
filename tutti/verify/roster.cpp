#include "tutti/verify/roster.h"

#include <algorithm>
#include <map>
#include <sstream>

#include <ATen/ops/view_as_real.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <fmt/format.h>

#include "tutti/verify/exchange.h"

namespace tutti::verifying {
namespace {

struct Line {
  std::int64_t elements = 0;
  at::ScalarType type = at::kFloat;
  std::string name;
  std::string description;
};

std::string line_of(const NamedTensor& one) {
  const auto elements = one.tensor.numel() * (one.tensor.is_complex() ? 2 : 1);
  return fmt::format("{}\t{}\t{}\t{}\n", elements, static_cast<int>(one.tensor.scalar_type()), one.name,
                     describe(one.tensor));
}

std::vector<Line> lines_in(const std::string& text) {
  std::vector<Line> lines;
  std::istringstream stream(text);
  Line line;
  std::string elements;
  std::string type;
  while (std::getline(stream, elements, '\t') && std::getline(stream, type, '\t') &&
         std::getline(stream, line.name, '\t') && std::getline(stream, line.description)) {
    line.elements = std::stoll(elements);
    line.type = static_cast<at::ScalarType>(std::stoi(type));
    lines.push_back(line);
  }
  return lines;
}

void check_alike(const std::vector<std::vector<Line>>& all, const std::vector<Rank>& slice) {
  const auto& first = all[to_index(slice[0])];
  for (const auto rank : slice) {
    const auto& other = all[to_index(rank)];
    const auto same = [](const Line& a, const Line& b) { return a.name == b.name && a.description == b.description; };
    const auto [left, right] = std::mismatch(first.begin(), first.end(), other.begin(), other.end(), same);
    if (left == first.end() && right == other.end()) {
      continue;
    }
    const auto told = [](const auto& place, const auto& end) {
      return place == end ? std::string("nothing") : fmt::format("'{}' {}", place->name, place->description);
    };
    throw Exception({Code::mismatch,
                     fmt::format("verify: models differ: rank {} has {} where rank {} has {}", to_int(slice[0]),
                                 told(left, first.end()), to_int(rank), told(right, other.end())),
                     rank});
  }
}

}  // namespace

Roster::Roster(const std::vector<NamedTensor>& tensors, const Group& group,
               const std::vector<std::vector<Rank>>& slices) {
  std::string own;
  for (const auto& one : tensors) {
    own += line_of(one);
  }
  std::vector<std::vector<Line>> all;
  for (const auto& text : told_by_all(own, group)) {
    all.push_back(lines_in(text));
  }
  for (const auto& slice : slices) {
    check_alike(all, slice);
  }
  std::map<std::string, std::size_t> places;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (const auto& line : all[rank]) {
      const auto [place, is_new] = places.try_emplace(line.name, entries.size());
      if (is_new) {
        entries.push_back(
            {.name = line.name, .type = line.type, .elements = std::vector<std::int64_t>(all.size(), -1)});
      }
      entries[place->second].elements[rank] = line.elements;
    }
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    entries[places[tensors[i].name]].place = i;
  }
}

at::Tensor flat_doubles(const at::Tensor& tensor) {
  auto dense = tensor.detach();
  dense = dense.is_sparse() ? dense.to_dense() : dense;
  dense = dense.is_complex() ? at::view_as_real(dense.resolve_conj()) : dense;
  return dense.to(at::kCPU, at::kDouble).reshape({-1});
}

double roundoff_of(at::ScalarType type) {
  switch (c10::toRealValueType(type)) {
    case at::kDouble: return 0x1p-53;
    case at::kHalf: return 0x1p-11;
    case at::kBFloat16: return 0x1p-8;
    default: return 0x1p-24;
  }
}

double smallest_normal(at::ScalarType type) {
  switch (c10::toRealValueType(type)) {
    case at::kDouble: return 0x1p-1022;
    case at::kHalf: return 0x1p-14;
    default: return 0x1p-126;
  }
}

}  // namespace tutti::verifying
