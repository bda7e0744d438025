#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/error.h"
#include "tutti/base/rank.h"

namespace tutti {

/// One named direction of a mesh.
struct Axis {
  std::string name;
  int size = 1;
  bool operator==(const Axis&) const = default;
};

/// Ranks arranged as a named n-dimensional array, row-major: the last axis varies fastest. Pure numbers: no ranks are
/// contacted. A layout always covers ranks 0 .. size()-1 of something; which ranks those are is the caller's.
class MeshLayout {
 public:
  /// From text: "dp=2,tp=2". One size may be "*" and is then what is left of `world_size`.
  /// Fails, saying what is wrong, on bad syntax, a duplicate or unusable name, a size below 1, or a product that is not
  /// `world_size`.
  static Result<MeshLayout> parse(std::string_view text, int world_size);

  /// From axes. Fails like `parse`.
  static Result<MeshLayout> make(std::vector<Axis> axes, int world_size);

  const std::vector<Axis>& axes() const { return axes_; }
  int size() const;

  /// Position of an axis; fails naming the axes there are.
  Result<std::size_t> find(std::string_view axis) const;

  /// Where a rank is, one number per axis; and back.
  std::vector<int> coordinate(Rank rank) const;
  Rank rank(const std::vector<int>& coordinate) const;

  /// The ranks that differ from `rank` only along `axes` (in the order given, row-major), itself among them.
  /// Fails on an unknown or repeated axis.
  Result<std::vector<Rank>> slice(Rank rank, const std::vector<std::string>& axes) const;

  /// The layout of such a slice: those axes alone, in that order.
  Result<MeshLayout> keep(const std::vector<std::string>& axes) const;

  /// "dp=2,tp=2"
  std::string text() const;

  bool operator==(const MeshLayout&) const = default;

 private:
  explicit MeshLayout(std::vector<Axis> axes) : axes_(std::move(axes)) {}
  std::vector<Axis> axes_;
};

/// Splits "dp,cp" at its commas, dropping spaces around names.
std::vector<std::string> split_names(std::string_view text);

}  // namespace tutti
