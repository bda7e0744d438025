#pragma once

#include "tutti/plan/team.h"

namespace tutti::plan {

// Operations with a root, which is the team's first member.

void tree_broadcast(Builder& builder, const Team& team, unsigned chunks);
void binomial_broadcast(Builder& builder, const Team& team, unsigned chunks);
void direct_broadcast(Builder& builder, const Team& team, unsigned chunks);
void scatter_gather_broadcast(Builder& builder, const Team& team, unsigned chunks);

void tree_reduce(Builder& builder, const Team& team, unsigned chunks);
void direct_reduce(Builder& builder, const Team& team, unsigned chunks);
void scatter_gather_reduce(Builder& builder, const Team& team, unsigned chunks);

/// Blocks are those of the ranks, wherever they stand in the team.
void direct_gather(Builder& builder, const Team& team, unsigned chunks);
void binomial_gather(Builder& builder, const Team& team);
void direct_scatter(Builder& builder, const Team& team, unsigned chunks);
void binomial_scatter(Builder& builder, const Team& team);

// As parts of something larger: the first member gets the sum of `from` in `to`, which others use on the way; or
// everybody gets what the first has.
void direct_reduce(Builder& builder, const Team& team, Span from, Span to, unsigned chunks);
void ring_reduce_to_first(Builder& builder, const Team& team, Span from, Span to, unsigned chunks);
void direct_broadcast(Builder& builder, const Team& team, Span span, unsigned chunks);
void ring_broadcast_from_first(Builder& builder, const Team& team, Span span, unsigned chunks);

}  // namespace tutti::plan
