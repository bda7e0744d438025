#include "tutti/base/mesh_layout.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti {
namespace {

constexpr int kFree = -1;  // the axis whose size is "*"
constexpr std::size_t kMostAxes = 16;

Error wrong(std::string message) { return {.code = Code::invalid_argument, .message = std::move(message)}; }

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_space(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

bool is_name(std::string_view name) {
  const auto good = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !name.empty() && name.size() <= 64 && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(), good);
}

Result<Axis> parse_axis(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) {
    return wrong(fmt::format("mesh axis '{}': write it as name=size, for example dp=2", text));
  }
  const auto name = trim(text.substr(0, equals));
  const auto size_text = trim(text.substr(equals + 1));
  if (size_text == "*") {
    return Axis{std::string(name), kFree};
  }
  int size = 0;
  const auto [end, error] = std::from_chars(size_text.data(), size_text.data() + size_text.size(), size);
  if (error != std::errc{} || end != size_text.data() + size_text.size() || size < 1) {
    return wrong(fmt::format("mesh axis '{}': its size must be a whole number from 1 on, or * for what is left", text));
  }
  return Axis{std::string(name), size};
}

std::vector<std::string> names_of(const std::vector<Axis>& axes) {
  std::vector<std::string> names;
  for (const auto& axis : axes) {
    names.push_back(axis.name);
  }
  return names;
}

std::string text_of(const std::vector<Axis>& axes) {
  std::vector<std::string> parts;
  for (const auto& axis : axes) {
    parts.push_back(axis.size == kFree ? axis.name + "=*" : fmt::format("{}={}", axis.name, axis.size));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

/// Gives the "*" axis what the others leave of the world.
Status fill_free_axis(std::vector<Axis>& axes, std::int64_t known, int world_size) {
  const auto free_axis = std::find_if(axes.begin(), axes.end(), [](const Axis& axis) { return axis.size == kFree; });
  if (free_axis == axes.end()) {
    return {};
  }
  if (world_size % known != 0) {
    return wrong(fmt::format("mesh {}: {} ranks cannot be divided by {} to fill {}=*", text_of(axes), world_size, known,
                             free_axis->name));
  }
  free_axis->size = static_cast<int>(world_size / known);
  return {};
}

}  // namespace

Result<MeshLayout> MeshLayout::parse(std::string_view text, int world_size) {
  if (trim(text).empty()) {
    return wrong("mesh: no axes given; write for example dp=2,tp=2");
  }
  std::vector<Axis> axes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    auto axis = parse_axis(text.substr(begin, end - begin));
    if (!axis) {
      return axis.error();
    }
    axes.push_back(std::move(axis).value());
    begin = end + 1;
  }
  return make(std::move(axes), world_size);
}

Result<MeshLayout> MeshLayout::make(std::vector<Axis> axes, int world_size) {
  if (axes.empty() || axes.size() > kMostAxes) {
    return wrong(fmt::format("mesh: {} axes given; 1 to {} are possible", axes.size(), kMostAxes));
  }
  std::int64_t known = 1;
  int free_axes = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto& [name, size] = axes[i];
    if (!is_name(name)) {
      return wrong(
          fmt::format("mesh axis '{}': a name is letters, digits and _, up to 64, not starting with a digit", name));
    }
    if (std::any_of(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i),
                    [&name = name](const Axis& earlier) { return earlier.name == name; })) {
      return wrong(fmt::format("mesh {}: axis '{}' is named twice", text_of(axes), name));
    }
    if (size < 1 && size != kFree) {
      return wrong(fmt::format("mesh axis '{}': its size is {}, and must be at least 1", name, size));
    }
    if (size == kFree) {
      ++free_axes;
    } else {
      known *= size;
    }
    if (known > world_size || free_axes > 1) {
      return wrong(free_axes > 1 ? fmt::format("mesh {}: only one axis can be *", text_of(axes))
                                 : fmt::format("mesh {} needs at least {} ranks; the world has {}", text_of(axes),
                                               known, world_size));
    }
  }
  if (const auto filled = fill_free_axis(axes, known, world_size); !filled) {
    return filled.error();
  }
  MeshLayout layout(std::move(axes));
  if (layout.size() != world_size) {
    return wrong(fmt::format("mesh {} has {} ranks; the world has {}", layout.text(), layout.size(), world_size));
  }
  return layout;
}

int MeshLayout::size() const {
  return std::accumulate(axes_.begin(), axes_.end(), 1,
                         [](int product, const Axis& axis) { return product * axis.size; });
}

Result<std::size_t> MeshLayout::find(std::string_view axis) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == axis) {
      return i;
    }
  }
  return wrong(fmt::format("mesh {} has no axis '{}'; it has {}", text(), axis, fmt::join(names_of(axes_), ", ")));
}

std::vector<int> MeshLayout::coordinate(Rank rank) const {
  require(to_int(rank) >= 0 && to_int(rank) < size(), "a rank's coordinate needs a rank of the mesh");
  std::vector<int> coordinate(axes_.size());
  int rest = to_int(rank);
  for (std::size_t i = axes_.size(); i-- > 0;) {
    coordinate[i] = rest % axes_[i].size;
    rest /= axes_[i].size;
  }
  return coordinate;
}

Rank MeshLayout::rank(const std::vector<int>& coordinate) const {
  require(coordinate.size() == axes_.size(), "a coordinate has one number per axis");
  int rank = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    require(coordinate[i] >= 0 && coordinate[i] < axes_[i].size, "a coordinate lies inside the mesh");
    rank = rank * axes_[i].size + coordinate[i];
  }
  return Rank{rank};
}

Result<MeshLayout> MeshLayout::keep(const std::vector<std::string>& axes) const {
  if (axes.empty()) {
    return wrong(fmt::format("mesh {}: name at least one axis", text()));
  }
  std::vector<Axis> kept;
  for (const auto& name : axes) {
    const auto position = find(name);
    if (!position) {
      return position.error();
    }
    const auto& axis = axes_[position.value()];
    if (std::find(kept.begin(), kept.end(), axis) != kept.end()) {
      return wrong(fmt::format("mesh {}: axis '{}' is asked for twice", text(), name));
    }
    kept.push_back(axis);
  }
  return MeshLayout(std::move(kept));
}

Result<std::vector<Rank>> MeshLayout::slice(Rank rank, const std::vector<std::string>& axes) const {
  const auto kept = keep(axes);
  if (!kept) {
    return kept.error();
  }
  auto here = coordinate(rank);
  std::vector<Rank> ranks;
  for (int i = 0; i < kept.value().size(); ++i) {
    const auto inner = kept.value().coordinate(Rank{i});
    for (std::size_t axis = 0; axis < inner.size(); ++axis) {
      here[find(axes[axis]).value()] = inner[axis];
    }
    ranks.push_back(this->rank(here));
  }
  return ranks;
}

std::string MeshLayout::text() const { return text_of(axes_); }

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    names.emplace_back(trim(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return names;
}

}  // namespace tutti
