#pragma once

#include <string>
#include <vector>

#include "tutti/plan/plan.h"

namespace tutti::plan {

enum class Algorithm {
  ring,                ///< everyone talks to its neighbours alone: least traffic, most steps
  tree,                ///< up and down a binary tree, in chunks
  double_tree,         ///< half of the data in each of two trees, so that all links are used both ways
  recursive_doubling,  ///< everything is exchanged with one twice as far at each step: fewest steps
  halving_doubling,    ///< half as much at each step, then back: least traffic in few steps
  one_shot,            ///< everyone sends everything to everybody
  direct,              ///< everyone sends to everybody what that one needs: for a sum, two shots
  binomial,            ///< root and others along a tree in which everyone serves one more at each step
  scatter_gather,      ///< a broadcast or reduce of a large block in slices, around a ring
  bruck,               ///< many small blocks at once, in as few steps as there are bits in the number of ranks
  hybrid,              ///< inside of hosts, then between them, then inside again
};

std::string_view to_string(Algorithm algorithm);
Result<Algorithm> parse_algorithm(std::string_view text);

/// For which operations it has a plan.
bool can(Algorithm algorithm, Op op);
std::vector<Algorithm> algorithms_for(Op op);
/// Whether that plan may be divided into chunks. All but those whose messages hold several blocks: bruck, and gather
/// and scatter by binomial.
bool takes_chunks(Algorithm algorithm, Op op);

/// What a hybrid can be made of.
std::vector<Algorithm> algorithms_inside_hosts();
std::vector<Algorithm> algorithms_between_hosts();
/// The one of these with that name. `where`, for the error: "inside of a host" there are ring, tree, not rink.
Result<Algorithm> parse_one_of(std::string_view name, const std::vector<Algorithm>& these, std::string_view where);

/// Into how many chunks any plan may be divided.
inline constexpr unsigned kMostChunks = 4096;

/// Which plan is wanted.
struct Request {
  Op op = Op::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  int ranks = 1;
  Rank root{0};
  /// Into how many parts what moves at once is divided: one is on its way while another is added or passed on. 1 where
  /// the plan does not take chunks.
  unsigned chunks = 1;
  /// Who is whose neighbour: each rank once. Empty: as they are numbered. For all_reduce, reduce_scatter, all_gather.
  std::vector<Rank> order = {};

  // Of hybrid plans.
  std::vector<std::vector<Rank>> hosts = {};      ///< each rank once
  Algorithm inner = Algorithm::direct;            ///< inside of a host: direct, ring or tree
  Algorithm outer = Algorithm::halving_doubling;  ///< between hosts: any other all-reduce
  unsigned leaders = 1;                           ///< of each host; no more than the smallest has ranks
};

/// Whether there is such a plan; otherwise an error that says what to change.
Status check(const Request& request);

/// How it divides what it moves.
Result<Shape> shape_of(const Request& request);

/// What one rank does. A function of the request alone: ranks that build theirs apart fit each other.
Result<Program> build(const Request& request, Rank rank);
/// What all do.
Result<Plan> build(const Request& request);

}  // namespace tutti::plan
