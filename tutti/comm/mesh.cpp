#include "tutti/comm/mesh.h"

#include <algorithm>
#include <map>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tutti {
namespace {

std::vector<Rank> all_ranks(const Group& group) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < group.size(); ++rank) {
    ranks.push_back(Rank{rank});
  }
  return ranks;
}

}  // namespace

/// What a mesh and its slices have in common.
struct Mesh::Shared {
  explicit Shared(Group arranged) : group(std::move(arranged)) {}

  Group group;
  std::mutex mutex;
  std::map<std::vector<Rank>, Group> groups;      // by their ranks in `group`
  std::map<std::string, std::vector<Rank>> flat;  // by the names that flatten gave
};

Mesh::Mesh(Group group, std::string_view layout)
    : shared_(std::make_shared<Shared>(std::move(group))),
      layout_(value_or_throw(MeshLayout::parse(layout, shared_->group.size()))),
      ranks_(all_ranks(shared_->group)) {}

Mesh::Mesh(Group group, const std::vector<Axis>& axes)
    : shared_(std::make_shared<Shared>(std::move(group))),
      layout_(value_or_throw(MeshLayout::make(axes, shared_->group.size()))),
      ranks_(all_ranks(shared_->group)) {}

Rank Mesh::index() const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), shared_->group.rank());
  return to_rank(static_cast<std::size_t>(found - ranks_.begin()));
}

Mesh Mesh::operator[](std::string_view axes) const { return slice(split_names(axes)); }

Mesh Mesh::slice(const std::vector<std::string>& axes) const {
  if (axes.size() == 1 && !layout_.find(axes[0])) {
    const std::scoped_lock lock(shared_->mutex);
    if (const auto flat = shared_->flat.find(axes[0]); flat != shared_->flat.end()) {
      const int count = static_cast<int>(flat->second.size());
      return Mesh(shared_, value_or_throw(MeshLayout::make({{axes[0], count}}, count)), flat->second);
    }
  }
  std::vector<Rank> ranks;
  for (const auto position : value_or_throw(layout_.slice(index(), axes))) {
    ranks.push_back(ranks_[to_index(position)]);
  }
  return Mesh(shared_, value_or_throw(layout_.keep(axes)), std::move(ranks));
}

Mesh Mesh::flatten(const std::string& name) const {
  auto layout = value_or_throw(MeshLayout::make({{name, size()}}, size()));
  if (layout_.find(name)) {
    throw Exception({Code::invalid_argument, fmt::format("mesh {}: '{}' is an axis already", text(), name)});
  }
  const std::scoped_lock lock(shared_->mutex);
  const auto [entry, is_new] = shared_->flat.emplace(name, ranks_);
  if (!is_new && entry->second != ranks_) {
    throw Exception({Code::invalid_argument, fmt::format("mesh: '{}' already names another flattened slice", name)});
  }
  return Mesh(shared_, std::move(layout), ranks_);
}

int Mesh::size(std::string_view axis) const { return axes()[value_or_throw(layout_.find(axis))].size; }

std::vector<int> Mesh::coordinate() const { return layout_.coordinate(index()); }

int Mesh::coordinate(std::string_view axis) const { return coordinate()[value_or_throw(layout_.find(axis))]; }

Group Mesh::group() const {
  if (ranks_ == all_ranks(shared_->group)) {
    return shared_->group;
  }
  // Held while the group is made: a second thread that asks for the same group must not make another one.
  const std::scoped_lock lock(shared_->mutex);
  const auto found = shared_->groups.find(ranks_);
  if (found != shared_->groups.end()) {
    return found->second;
  }
  auto made = shared_->group.subgroup(ranks_);
  require(made.has_value(), "a slice goes through this rank");
  return shared_->groups.emplace(ranks_, std::move(*made)).first->second;
}

std::ostream& operator<<(std::ostream& stream, const Mesh& mesh) {
  const auto& ranks = mesh.ranks();
  const auto coordinate = mesh.coordinate();
  int position = 0;
  for (std::size_t axis = 0; axis < coordinate.size(); ++axis) {
    position = position * mesh.axes()[axis].size + coordinate[axis];
  }
  return stream << fmt::format("mesh {}: rank {} at ({})", mesh.text(),
                               to_int(ranks[static_cast<std::size_t>(position)]), fmt::join(coordinate, ", "));
}

}  // namespace tutti
