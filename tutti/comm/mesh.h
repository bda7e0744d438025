#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/mesh_layout.h"
#include "tutti/comm/group.h"

namespace tutti {

/// The ranks of a group as a named n-dimensional array, row-major, seen from this rank; or a slice of one.
///
///   auto mesh = world.mesh("dp=2,cp=2,tp=2");
///   mesh["dp"].group()              the ranks that differ from this one along dp alone
///   mesh["dp,cp"]                   two axes; with C++23 also mesh["dp", "cp"]
///   mesh["dp,cp"].flatten("dp_cp")  the same ranks along one axis, which mesh["dp_cp"] then finds too
///
/// A handle: copies and slices share their groups, which are made when they are first asked for, by their members.
/// Any thread. Errors are tutti::Exception and say what is wrong.
class Mesh {
 public:
  /// Arranges the ranks of `group`; the product of the axes must be its size.
  Mesh(Group group, std::string_view layout);
  Mesh(Group group, const std::vector<Axis>& axes);

  /// A slice through this rank along one axis or several ("dp,cp"), in the order named.
  Mesh operator[](std::string_view axes) const;
  Mesh slice(const std::vector<std::string>& axes) const;
#if defined(__cpp_multidimensional_subscript)
  template <class... Names>
  Mesh operator[](std::string_view first, std::string_view second, Names... more) const {
    return slice({std::string(first), std::string(second), std::string(std::string_view(more))...});
  }
#endif

  /// All ranks of this slice along one axis with a name of its own.
  Mesh flatten(const std::string& name) const;

  /// How many ranks: in all, or along one axis.
  int size() const { return layout_.size(); }
  int size(std::string_view axis) const;
  const std::vector<Axis>& axes() const { return layout_.axes(); }

  /// Where this rank is: along every axis, or along one.
  std::vector<int> coordinate() const;
  int coordinate(std::string_view axis) const;

  /// The ranks of the arranged group that are in this slice, row-major.
  const std::vector<Rank>& ranks() const { return ranks_; }

  /// The group of this slice. The first call on a rank makes it, and waits for the other members to do the same.
  Group group() const;
  operator Group() const { return group(); }

  /// "dp=2,tp=2"
  std::string text() const { return layout_.text(); }

 private:
  struct Shared;
  Mesh(std::shared_ptr<Shared> shared, MeshLayout layout, std::vector<Rank> ranks)
      : shared_(std::move(shared)), layout_(std::move(layout)), ranks_(std::move(ranks)) {}
  Rank index() const;

  std::shared_ptr<Shared> shared_;
  MeshLayout layout_;
  std::vector<Rank> ranks_;
};

/// "mesh dp=2,tp=2: rank 3 at (1, 1)"
std::ostream& operator<<(std::ostream& stream, const Mesh& mesh);

}  // namespace tutti
