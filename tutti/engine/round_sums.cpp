// Reproducible sums under way: addends and accumulators of all ranks, rounded once.

#include <algorithm>
#include <cstring>
#include <vector>

#include "tutti/engine/collectives.h"
#include "tutti/kernels/reproducible.h"

namespace tutti::engine {
namespace {

std::size_t width_of_sum(kernels::DType dtype) { return kernels::size_of(kernels::accumulator_of(dtype)); }

}  // namespace

/// What peers have to know of the inputs, of which every rank may have another number. Nothing is chosen for these (the
/// mark is the divisor), and nothing laid down with the notice.
void Collectives::write_summands(const Running& running) {
  const auto& call = running.call;
  auto& notice = hub_.notice(me(), running.sequence());
  auto& mine = hub_.particulars(me(), running.sequence());
  choice_ = nullptr;
  notice.plan = plan_ = mark_of_sums(call);
  notice.symmetric = false;
  mine.addends = static_cast<std::uint32_t>(whole_addends(call));
  mine.has_sums = mine.addends < call.in.size();
  bool reachable = true;
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    const auto place = reach_.place_of(call.in[i].data(), call.in[i].size());
    mine.places[i] = place.value_or(Notice::kElsewhere);
    reachable = reachable && place.has_value();
  }
  notice.in_place = reachable ? 0 : Notice::kElsewhere;
  if (only_ != nullptr) {
    notice.out_place = 0;  // where nobody writes
  } else {
    notice.out_place = reach_.place_of(call.out[0].data(), call.out[0].size()).value_or(Notice::kElsewhere);
  }
}

/// Every rank adds up its slice of all that all ranks have, where it lies, and writes it into all outputs.
Status Collectives::direct_round_sums(const Running& running) {
  const auto& call = running.call;
  const auto bytes = running.card().bytes;
  const auto size = kernels::size_of(call.dtype);
  const auto width = width_of_sum(call.dtype);
  const Slices slices(bytes, ranks());
  const auto begin = only_ != nullptr ? only_->begin : slices.begin(to_index(me()));
  const auto length = only_ != nullptr ? only_->length : slices.length(to_index(me()));
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
    if (only_ == nullptr) {
      const auto out = reach_.at(to_rank(rank), hub_.notice(to_rank(rank), running.sequence()).out_place, bytes);
      if (!out) {
        return out.error();
      }
      outs_[rank] = out.value() + begin;
    }
  }
  const kernels::SumParts summands{.addends = addends, .sums = sums};
  if (only_ != nullptr) {
    only_->take(call.dtype, summands);
  } else {
    kernels::round_all(call.dtype, summands, {outs_.data(), ranks()}, kernels::count_of(call.dtype, length),
                       {.divisor = call.divisor});
  }
  return {};
}

std::uint64_t Collectives::addends_in_reach(const Call& call) const {
  if (call.op != Op::round_sums) {
    return 0;
  }
  constexpr std::uint64_t kVeryMany = std::uint64_t{1} << 32;
  const auto in_reach = [this](const ConstBlock& block) {
    return ranks() == 1 || reach_.place_of(block.data(), block.size()).has_value();
  };
  const bool all = !call.ends_with_sums && std::all_of(call.in.begin(), call.in.end(), in_reach);
  return all ? call.in.size() : kVeryMany;
}

void Collectives::OnlySums::take(kernels::DType dtype, const kernels::SumParts& summands) const {
  if (addends == 0) {
    kernels::add_all(dtype, summands, to, kernels::count_of(dtype, length));
    return;
  }
  require(summands.sums.empty() && summands.addends.size() <= addends, "there is room for these addends");
  auto* next = to;
  for (std::size_t at = 0; at < length; at += part) {
    const auto bytes = std::min(part, length - at);
    for (const auto* addend : summands.addends) {
      std::memcpy(next, addend + at, bytes);
      next += bytes;
    }
    const auto missing = (addends - summands.addends.size()) * bytes;
    std::memset(next, 0, missing);
    next += missing;
  }
}

/// Where some of it is out of peers' reach: every rank lays down accumulators of all that it has, chunk by chunk, and
/// adds up those of all. The slots take turns as in other operations.
Status Collectives::staged_round_sums(const Running& running) {
  const auto elements = running.card().bytes / kernels::size_of(running.call.dtype);
  const auto chunk = chunk_ / width_of_sum(running.call.dtype);
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
    take_sums(running, k * chunk, length_of(k), sums);
  }
  return {};
}

/// What this rank is to have of elements `begin` to `begin + length`, whose accumulators are `sums`.
void Collectives::take_sums(const Running& running, std::size_t begin, std::size_t length,
                            std::vector<const std::byte*>& sums) const {
  const auto& call = running.call;
  const auto size = kernels::size_of(call.dtype);
  if (only_ == nullptr) {
    auto* const out = call.out[0].data() + begin * size;
    kernels::round_all(call.dtype, {.sums = sums}, {&out, 1}, length, {.divisor = call.divisor});
    return;
  }
  require(only_->addends == 0, "addends are taken from where they lie");
  const auto width = width_of_sum(call.dtype);
  const auto first = std::max(begin, only_->begin / size);
  const auto last = std::min(begin + length, (only_->begin + only_->length) / size);
  if (first >= last) {
    return;
  }
  for (auto& each : sums) {
    each += (first - begin) * width;
  }
  kernels::add_all(call.dtype, {.sums = sums}, only_->to + (first - only_->begin / size) * width, last - first);
}

/// Elements `begin` to `begin + length` of all inputs.
void Collectives::lay_sums_down(const Running& running, std::size_t begin, std::size_t length, std::byte* to) const {
  const auto& call = running.call;
  std::vector<const std::byte*> addends;
  for (std::size_t i = 0; i < whole_addends(call); ++i) {
    addends.push_back(call.in[i].data() + begin * kernels::size_of(call.dtype));
  }
  std::vector<const std::byte*> sums;
  if (call.ends_with_sums) {
    sums.push_back(call.in[addends.size()].data() + begin * width_of_sum(call.dtype));
  }
  kernels::add_all(call.dtype, {.addends = addends, .sums = sums}, to, length);
}

}  // namespace tutti::engine
