#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tutti/plan/builder.h"

namespace tutti::plan {

/// Ranks that do something together, in an order of their own, seen by one of them.
class Team {
 public:
  std::size_t me = 0;  ///< place of the rank whose program is being written

  std::size_t size() const { return size_; }
  Rank at(std::size_t place) const {
    require(size_ != 0, "a team has members");
    place %= size_;
    return members_.empty() ? to_rank((first_ + place) % size_) : members_[place];
  }

  /// All ranks, beginning with `first`.
  static Team of_all(int ranks, Rank me, Rank first = Rank{0});
  /// Those ranks; nothing when `me` is not among them.
  static std::optional<Team> of(std::vector<Rank> members, Rank me);

 private:
  Team(std::size_t place, std::size_t size) : me(place), size_(size) {}

  std::size_t size_;
  std::size_t first_ = 0;      // of all ranks: they need no list, of which every rank of thousands would make its own
  std::vector<Rank> members_;  // otherwise
};

/// What is moved between members: a span for each of them.
using Slices = std::function<Span(std::size_t place)>;

/// `span` in as many equal slices as the team has members.
Slices slices_of(const Team& team, Span span);

/// Where a member stands in a tree.
struct Branch {
  std::optional<std::size_t> parent;
  std::vector<std::size_t> children;
};

/// A binary tree of `size` members whose root is the first: member i stands above 2i + 1 and 2i + 2.
Branch binary_branch(std::size_t size, std::size_t place);
/// One of two trees over the same members such that nobody stands above others in both (but one, when their number is
/// odd): what goes up and down in halves, one half in each, keeps every link busy both ways.
Branch double_branch(std::size_t size, std::size_t place, bool second);
/// A binomial tree whose root is the first: at its k-th step everyone who has something serves the one 2^k further on.
/// What is below member i are the next ones after it, in order.
Branch binomial_branch(std::size_t size, std::size_t place);
/// How many members the part of a binomial tree has that begins with this one.
std::size_t binomial_weight(std::size_t size, std::size_t place);

// The movements that algorithms are made of. `from` is what a rank contributes, `to` where the result comes to be; they
// may be the same span. `chunks` is into how many equal parts what moves at once is divided, so that one part is on its
// way while the one before is being added.

/// Afterwards member i has the sum of slice i in `to(i)`; `to` of other slices is used on the way.
void ring_reduce_scatter(Builder& builder, const Team& team, const Slices& from, const Slices& to, unsigned chunks);
/// Every member has its slice and gets the others.
void ring_all_gather(Builder& builder, const Team& team, const Slices& slices, unsigned chunks);

/// The same with one message to and from everybody for each chunk, added in the team's order.
void direct_reduce_scatter(Builder& builder, const Team& team, const Slices& from, const Slices& to, unsigned chunks);
void direct_all_gather(Builder& builder, const Team& team, const Slices& slices, unsigned chunks);

/// The root of the tree gets the sum; `to` is used on the way.
void tree_reduce(Builder& builder, const Team& team, const Branch& branch, Span from, Span to, unsigned chunks);
/// Everybody gets what the root of the tree has.
void tree_broadcast(Builder& builder, const Team& team, const Branch& branch, Span span, unsigned chunks);

// All-reduces.
void ring_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks);
void tree_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks);
void double_tree_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks);
void one_shot_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks);
void two_shot_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks);
void recursive_doubling_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks);
void halving_doubling_all_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks);

}  // namespace tutti::plan
