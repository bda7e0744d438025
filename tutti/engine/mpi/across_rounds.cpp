// Reproducible sums under way of ranks on several hosts.
#include <algorithm>

#include "tutti/engine/mpi/across.h"
#include "tutti/kernels/reproducible.h"

namespace tutti::engine::mpi {
namespace {

using kernels::ReduceOp;

/// Bytes of the result of which a rank merges what hosts have at once.
constexpr std::size_t kSlice = std::size_t{256} << 10;

std::size_t width_of_sum(kernels::DType dtype) { return kernels::size_of(kernels::accumulator_of(dtype)); }

}  // namespace

/// In each host every rank takes a slice of what all ranks there have: the addends, where those are not more than
/// accumulators, else these. The ranks of all hosts with the same slice divide it among them: each gets its part of
/// what every host has, rounds the sum, and gives it to the others. While that of one segment is on its way, the next
/// is taken; while it is given around, the last one is spread inside of the host.
Status Across::round_sums(const Running& running, std::uint64_t addends) {
  const auto dtype = running.call.dtype;
  rounding_.addends = addends * kernels::size_of(dtype) <= width_of_sum(dtype) ? addends : 0;
  slicing_ = {.leaders = wires_.members.fewest(), .slice = kSlice, .between = {}};
  const auto segments = segments_of(running.call.out[0].size());
  const auto count = segments.size() - 1;
  auto status = take_near(running, segments, 0);
  if (status) {
    begin_merging(running, segments, 0);
  }
  for (std::size_t i = 0; i < count && status; ++i) {
    if (i + 1 < count) {
      status = take_near(running, segments, i + 1);
    }
    if (status) {
      status = finish_merging(running, segments, i);
    }
    if (status) {
      begin_giving(running, segments, i);
    }
    if (status && i > 0) {
      status = gather_near(running, segments, i - 1);
    }
    if (status) {
      status = finish_between(running.deadline);
    }
    if (status && i + 1 < count) {
      begin_merging(running, segments, i + 1);
    }
  }
  if (status) {
    status = gather_near(running, segments, count - 1);
  }
  return status;
}

/// Of this rank's slice, what all ranks of this host have. A neighbour may still wait for another host; that one is to
/// be blamed then.
Status Across::take_near(const Running& running, const Segments& segments, std::size_t index) {
  const auto& call = running.call;
  const auto size = kernels::size_of(call.dtype);
  const auto width = width_of_sum(call.dtype);
  const auto segment = segment_of(call.out[0], segments, index);
  const auto slice = slice_of(segment, to_index(local()));
  auto& own = rounding_.own[index % 2];
  own.resize(rounding_.addends == 0 ? slice.size() / size * width : slice.size() * rounding_.addends);
  const Collectives::OnlySums only{.begin = static_cast<std::size_t>(slice.data() - segment.data()),
                                   .length = slice.size(),
                                   .to = own.data(),
                                   .addends = rounding_.addends,
                                   .part = parts_of(slice).each};
  Call part{.op = Op::round_sums,
            .dtype = call.dtype,
            .reduce = call.reduce,
            .ends_with_sums = call.ends_with_sums,
            .divisor = call.divisor,
            .site = call.site};
  part.out = {segment};
  std::vector<const std::byte*> addends;
  for (std::size_t i = 0; i < whole_addends(call); ++i) {
    part.in.push_back(call.in[i].subspan(segments[index], segment.size()));
    addends.push_back(part.in[i].data() + only.begin);
  }
  std::vector<const std::byte*> sums;
  if (call.ends_with_sums) {
    part.in.push_back(call.in[addends.size()].subspan(segments[index] / size * width, segment.size() / size * width));
    sums.push_back(part.in[addends.size()].data() + only.begin / size * width);
  }
  if (near_ranks() == 1) {
    only.take(call.dtype, {.addends = addends, .sums = sums});
    return {};
  }
  return near_.run_part(part, {.whole = running.doing, .mark = 1, .only = &only}, later(running.deadline));
}

/// By host: which part of a slice it rounds.
Slices Across::parts_of(Block slice) const { return {slice.size(), static_cast<std::size_t>(wires_.members.hosts())}; }

/// Each host gets its part of what the others have: accumulators are merged on arrival.
void Across::begin_merging(const Running& running, const Segments& segments, std::size_t index) {
  between_.runner = nullptr;
  const auto slice = slice_of(segment_of(running.call.out[0], segments, index), to_index(local()));
  if (slice.empty()) {
    return;
  }
  const auto parts = parts_of(slice);
  const auto dtype = running.call.dtype;
  const auto addends = rounding_.addends;
  const auto times = [&](std::size_t bytes) {
    return addends == 0 ? bytes / kernels::size_of(dtype) * width_of_sum(dtype) : bytes * addends;
  };
  const Block own(rounding_.own[index % 2]);
  const auto hosts = static_cast<std::size_t>(wires_.members.hosts());
  const auto me = static_cast<std::size_t>(host());
  Call call;
  for (std::size_t each = 0; each < hosts; ++each) {
    call.in.push_back(own.subspan(times(parts.begin(each)), times(parts.length(each))));
  }
  const auto mine = own.subspan(times(parts.begin(me)), times(parts.length(me)));
  if (addends == 0) {
    call.op = Op::reduce_scatter;
    call.dtype = kernels::accumulator_of(dtype);
    call.reduce = ReduceOp::sum;
    call.out = {mine};
    return begin_between(running, std::move(call), outer_runner(plan::Op::reduce_scatter, plan::Algorithm::direct, 1));
  }
  call.op = Op::all_to_all;
  call.dtype = dtype;
  rounding_.others.resize(mine.size() * hosts);
  for (std::size_t each = 0; each < hosts; ++each) {
    call.out.push_back(each == me ? mine : Block(rounding_.others).subspan(mine.size() * each, mine.size()));
  }
  begin_between(running, std::move(call), outer_runner(plan::Op::all_to_all, plan::Algorithm::direct, 1));
}

Status Across::finish_merging(const Running& running, const Segments& segments, std::size_t index) {
  if (auto merged = finish_between(running.deadline); !merged) {
    return merged;
  }
  const auto slice = slice_of(segment_of(running.call.out[0], segments, index), to_index(local()));
  const auto parts = parts_of(slice);
  const auto me = static_cast<std::size_t>(host());
  const auto dtype = running.call.dtype;
  const auto bytes = parts.length(me);
  const auto count = kernels::count_of(dtype, bytes);
  auto* const to = slice.data() + parts.begin(me);
  const auto* const own = rounding_.own[index % 2].data();
  if (rounding_.addends == 0) {
    const auto* const sums = own + kernels::count_of(dtype, parts.begin(me)) * width_of_sum(dtype);
    kernels::round_accumulators(dtype, sums, {&to, 1}, count, {.divisor = running.call.divisor});
    return {};
  }
  std::vector<const std::byte*> addends;
  for (std::size_t host = 0; host < static_cast<std::size_t>(wires_.members.hosts()); ++host) {
    const auto* const theirs = host == me ? own + parts.begin(me) * rounding_.addends
                                          : rounding_.others.data() + host * bytes * rounding_.addends;
    for (std::size_t i = 0; i < rounding_.addends; ++i) {
      addends.push_back(theirs + i * bytes);
    }
  }
  kernels::round_all(dtype, {.addends = addends}, {&to, 1}, count, {.divisor = running.call.divisor});
  return {};
}

void Across::begin_giving(const Running& running, const Segments& segments, std::size_t index) {
  between_.runner = nullptr;
  const auto slice = slice_of(segment_of(running.call.out[0], segments, index), to_index(local()));
  if (slice.empty()) {
    return;
  }
  const auto parts = parts_of(slice);
  const auto part_of = [&](int host) {
    const auto which = static_cast<std::size_t>(host);
    return slice.subspan(parts.begin(which), parts.length(which));
  };
  Call give{.op = Op::all_gather, .dtype = running.call.dtype};
  give.in = {ConstBlock(part_of(host()))};
  for (int each = 0; each < wires_.members.hosts(); ++each) {
    give.out.push_back(part_of(each));
  }
  begin_between(running, std::move(give), outer_runner(plan::Op::all_gather, plan::Algorithm::direct, 1));
}

}  // namespace tutti::engine::mpi
