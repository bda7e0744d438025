// Reproducible sums under way: addends and accumulators of all ranks, rounded once.

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "tutti/engine/collectives.h"
#include "tutti/kernels/reproducible.h"

namespace tutti::engine {
namespace {

std::size_t width_of_sum(kernels::DType dtype) { return kernels::size_of(kernels::accumulator_of(dtype)); }

}  // namespace

/// What peers have to know of the inputs, of which every rank may have another number. Nothing is chosen for these, and
/// nothing laid down with the notice.
void Collectives::write_summands(const Running& running) {
  const auto& call = running.call;
  auto& notice = hub_.notice(me(), running.sequence());
  auto& mine = hub_.particulars(me(), running.sequence());
  choice_ = nullptr;
  notice.plan = plan_ = 0;
  notice.symmetric = false;
  mine.divisor = call.divisor;
  mine.addends = static_cast<std::uint32_t>(whole_addends(call));
  mine.has_sums = mine.addends < call.in.size();
  bool reachable = true;
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    const auto place = reach_.place_of(call.in[i].data(), call.in[i].size());
    mine.places[i] = place.value_or(Notice::kElsewhere);
    reachable = reachable && place.has_value();
  }
  notice.in_place = reachable ? 0 : Notice::kElsewhere;
  notice.out_place = reach_.place_of(call.out[0].data(), call.out[0].size()).value_or(Notice::kElsewhere);
}

Status Collectives::check_divisors(const Running& running) const {
  const auto first = hub_.particulars(Rank{0}, running.sequence()).divisor;
  for (std::size_t rank = 1; rank < ranks(); ++rank) {
    const auto theirs = hub_.particulars(to_rank(rank), running.sequence()).divisor;
    if (theirs != first) {
      return Error{Code::mismatch,
                   fmt::format("{}: rank {} divides by {}, and rank {} by {}", running.doing.text(),
                               to_int(hub_.name_of(Rank{0})), first, to_int(hub_.name_of(to_rank(rank))), theirs),
                   hub_.name_of(to_rank(rank))};
    }
  }
  return {};
}

/// Every rank adds up its slice of all that all ranks have, where it lies, and writes it into all outputs.
Status Collectives::direct_round_sums(const Running& running) {
  const auto& call = running.call;
  const auto bytes = running.card().bytes;
  const auto size = kernels::size_of(call.dtype);
  const auto width = width_of_sum(call.dtype);
  const Slices slices(bytes, ranks());
  const auto begin = slices.begin(to_index(me()));
  std::vector<const std::byte*> addends;
  std::vector<const std::byte*> sums;
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    const auto& theirs = hub_.particulars(to_rank(rank), running.sequence());
    for (std::size_t i = 0; i < theirs.addends + (theirs.has_sums ? 1U : 0U); ++i) {
      const bool whole = i < theirs.addends;
      const auto in = reach_.at(to_rank(rank), theirs.places[i], whole ? bytes : bytes / size * width);
      if (!in) {
        return in.error();
      }
      if (whole) {
        addends.push_back(in.value() + begin);
      } else {
        sums.push_back(in.value() + begin / size * width);
      }
    }
    const auto out = reach_.at(to_rank(rank), hub_.notice(to_rank(rank), running.sequence()).out_place, bytes);
    if (!out) {
      return out.error();
    }
    outs_[rank] = out.value() + begin;
  }
  kernels::round_all(call.dtype, {.addends = addends, .sums = sums}, {outs_.data(), ranks()},
                     kernels::count_of(call.dtype, slices.length(to_index(me()))), {.divisor = call.divisor});
  return {};
}

/// Where some of it is out of peers' reach: every rank lays down accumulators of all that it has, chunk by chunk, and
/// adds up those of all. The slots take turns as in other operations.
Status Collectives::staged_round_sums(const Running& running) {
  const auto& call = running.call;
  const auto size = kernels::size_of(call.dtype);
  const auto elements = running.card().bytes / size;
  const auto chunk = chunk_ / width_of_sum(call.dtype);
  const auto rounds = (elements + chunk - 1) / chunk;
  const auto slot_of = [&](std::size_t rank, std::size_t k) {
    return hub_.slot(to_rank(rank), static_cast<unsigned>(k % HubLayout::kSlots));
  };
  const auto length_of = [&](std::size_t k) { return std::min(chunk, elements - k * chunk); };
  std::uint64_t staged = 0;
  const auto lay_chunk_down = [&](std::size_t k) {
    lay_sums_down(running, k * chunk, length_of(k), slot_of(to_index(me()), k));
    staged = hub_.step();
  };
  if (rounds > 0) {
    lay_chunk_down(0);
  }
  std::vector<const std::byte*> sums(ranks());
  for (std::size_t k = 0; k < rounds; ++k) {
    if (auto met = hub_.await_steps(staged, running.doing, running.deadline); !met) {
      return met;
    }
    if (k + 1 < rounds) {
      lay_chunk_down(k + 1);
    }
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      sums[rank] = slot_of(rank, k);
    }
    auto* const out = call.out[0].data() + k * chunk * size;
    kernels::round_all(call.dtype, {.sums = sums}, {&out, 1}, length_of(k), {.divisor = call.divisor});
  }
  return {};
}

/// Elements `begin` to `begin + length` of all inputs.
void Collectives::lay_sums_down(const Running& running, std::size_t begin, std::size_t length, std::byte* to) const {
  const auto& call = running.call;
  const auto width = width_of_sum(call.dtype);
  std::memset(to, 0, length * width);
  std::vector<const std::byte*> addends;
  for (std::size_t i = 0; i < whole_addends(call); ++i) {
    addends.push_back(call.in[i].data() + begin * kernels::size_of(call.dtype));
  }
  if (!addends.empty()) {
    kernels::accumulate(call.dtype, addends, to, length);
  }
  if (addends.size() < call.in.size()) {
    const std::array<const std::byte*, 2> both{to, call.in[addends.size()].data() + begin * width};
    kernels::reduce({.op = kernels::ReduceOp::sum, .dtype = kernels::accumulator_of(call.dtype)}, both, {&to, 1},
                    length);
  }
}

}  // namespace tutti::engine
