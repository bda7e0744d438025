#include "tutti/comm/reproducible_sum.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <c10/util/ScopeExit.h>
#include <fmt/format.h>

#include "tutti/comm/dtype.h"
#include "tutti/comm/exception.h"
#include "tutti/comm/prepare.h"
#include "tutti/comm/symmetric.h"
#include "tutti/engine/call.h"
#include "tutti/kernels/reproducible.h"
#include "tutti/plan/tuner.h"

namespace tutti {
namespace {

kernels::DType kernel_type(at::ScalarType part) { return value_or_throw(to_dtype(part)); }

constexpr auto kMost = static_cast<std::int64_t>(kernels::kMostAddends);

/// As they are. Adding them up at once takes a fraction of the time.
constexpr std::size_t kMostKept = engine::kMostWholeAddends;

/// So many elements more than an addend has are kept, so that parts of as many ranks are equally long.
constexpr std::int64_t kMostParts = 1024;

void check_count(std::int64_t addends) {
  if (addends > kMost) {
    refuse(fmt::format("ReproducibleSum: {} addends; at most {} can be added", addends, kMost));
  }
}

void check_divisor(std::int64_t divisor) {
  if (divisor < 1 || divisor > static_cast<std::int64_t>(kernels::kMostDivisor)) {
    refuse(fmt::format("ReproducibleSum: divisor {}; it is between 1 and {}", divisor, kernels::kMostDivisor));
  }
}

/// By rank: elements, their type, the divisor, and whether it and the result are good; then whatever may differ.
void check_alike(const at::Tensor& all) {
  const auto rows = all.accessor<std::int64_t, 2>();
  const auto text = [&](std::int64_t rank) {
    return fmt::format("rank {} has {} elements of {}, divided by {}{}", rank, rows[rank][0],
                       c10::toString(static_cast<at::ScalarType>(rows[rank][1])), rows[rank][2],
                       rows[rank][3] == 0 ? ", which is refused there, or its result" : "");
  };
  for (std::int64_t rank = 1; rank < all.size(0); ++rank) {
    if (!all[rank].narrow(0, 0, 4).equal(all[0].narrow(0, 0, 4))) {
      throw Exception({Code::mismatch, fmt::format("ReproducibleSum::round_over: {}, and {}", text(0), text(rank)),
                       Rank{static_cast<std::int32_t>(rank)}});
    }
  }
}

void check_engine(const Group& group) {
  if (group.engine() != "shm" && group.engine() != "local" && group.engine() != "mpi") {
    refuse(fmt::format("ReproducibleSum: a group of backend '{}' cannot add accumulators", group.engine()));
  }
}

void round_at_once(kernels::DType type, const std::vector<const std::byte*>& addends, std::byte* to, std::int64_t count,
                   std::int64_t divisor) {
  kernels::reduce({.op = ReduceOp::reproducible_avg, .dtype = type, .divisor = static_cast<std::size_t>(divisor)},
                  addends, {&to, 1}, static_cast<std::size_t>(count));
}

}  // namespace

ReproducibleSum::ReproducibleSum(const at::Tensor& like)
    : options_(like.options().requires_grad(false)),
      sizes_(like.sizes().vec()),
      part_type_(c10::toRealValueType(like.scalar_type())),
      parts_(like.numel()) {
  check_tensor(like, "ReproducibleSum");
  if (!like.is_floating_point() && !like.is_complex()) {
    refuse(
        "ReproducibleSum: a tensor of floats or complex numbers is needed; sums of integers are reproducible anyway");
  }
  (void)kernel_type(part_type_);  // throws where there is none
  parts_ *= like.is_complex() ? 2 : 1;
}

ReproducibleSum::ReproducibleSum(const at::Tensor& like, const Group& group) : ReproducibleSum(like) {
  if (group.can_round_sums()) {
    group_ = group;
    grow();  // where results go, if they are not symmetric themselves
  }
}

at::Tensor ReproducibleSum::memory(std::int64_t elements, at::ScalarType type) const {
  const auto options = options_.dtype(type);
  return group_ ? symmetric_if_any({elements}, options, *group_) : at::empty({elements}, options);
}

at::Tensor ReproducibleSum::checked(const at::Tensor& tensor) const {
  check_tensor(tensor, "ReproducibleSum");
  if (tensor.sizes() != at::IntArrayRef(sizes_) ||
      tensor.scalar_type() != c10::typeMetaToScalarType(options_.dtype())) {
    refuse(fmt::format("ReproducibleSum: a tensor of {} elements of {} does not fit one of {} elements of {}",
                       tensor.numel(), c10::toString(tensor.scalar_type()), c10::multiply_integers(sizes_),
                       c10::toString(c10::typeMetaToScalarType(options_.dtype()))));
  }
  return tensor.detach().resolve_conj().resolve_neg().contiguous();
}

std::vector<const std::byte*> ReproducibleSum::kept() const {
  std::vector<const std::byte*> addends;
  for (std::size_t i = 0; i < used_; ++i) {
    addends.push_back(bytes_of(kept_[i]).data());
  }
  return addends;
}

void ReproducibleSum::grow() {
  kept_.push_back(memory(parts_ + kMostParts, part_type_));
  kept_.back().narrow(0, parts_, kMostParts).zero_();
}

void ReproducibleSum::keep(const std::byte* addend) {
  if (used_ == kept_.size()) {
    grow();
  }
  if (parts_ > 0) {
    std::memcpy(writable_bytes_of(kept_[used_]).data(), addend,
                static_cast<std::size_t>(parts_ * kept_[used_].element_size()));
  }
  ++used_;
}

void ReproducibleSum::add_up_kept() {
  const auto type = kernel_type(part_type_);
  if (!bytes_.defined()) {
    const auto width = static_cast<std::int64_t>(kernels::size_of(kernels::accumulator_of(type)));
    bytes_ = memory(parts_ * width, at::kByte).zero_();
  } else if (!added_up_) {
    bytes_.zero_();
  }
  added_up_ = true;
  if (used_ > 0) {
    kernels::accumulate(type, kept(), writable_bytes_of(bytes_).data(), static_cast<std::size_t>(parts_));
  }
  used_ = 0;
}

void ReproducibleSum::add(const at::Tensor& tensor) {
  check_count(addends_ + 1);
  const auto plain = checked(tensor);
  if (used_ == kMostKept) {
    add_up_kept();
  }
  keep(bytes_of(plain).data());
  ++addends_;
}

void ReproducibleSum::merge(const ReproducibleSum& other) {
  if (other.sizes_ != sizes_ || other.options_.dtype() != options_.dtype()) {
    refuse("ReproducibleSum: sums of different shapes or types cannot be merged");
  }
  check_count(addends_ + other.addends_);
  const auto theirs = other.kept();
  if (!other.added_up_ && used_ + theirs.size() <= kMostKept) {
    for (const auto* addend : theirs) {
      keep(addend);
    }
  } else {
    add_up_kept();
    const auto type = kernel_type(part_type_);
    auto* const mine = writable_bytes_of(bytes_).data();
    if (!theirs.empty() && &other != this) {
      kernels::accumulate(type, theirs, mine, static_cast<std::size_t>(parts_));
    }
    if (other.added_up_) {
      const std::array<const std::byte*, 2> sources{mine, bytes_of(other.bytes_).data()};
      kernels::reduce({.op = ReduceOp::sum, .dtype = kernels::accumulator_of(type)}, sources, {&mine, 1},
                      static_cast<std::size_t>(parts_));
    }
  }
  addends_ += other.addends_;
}

Work ReproducibleSum::all_reduce(const Group& group, Group::Site site) {
  check_count(addends_ * group.size());
  check_engine(group);
  return add_up_over(group, site);
}

Work ReproducibleSum::add_up_over(const Group& group, Group::Site site) {
  Reduce reduce(ReduceOp::sum);
  reduce.read_as = kernels::accumulator_of(kernel_type(part_type_));
  return group.all_reduce(bytes(), reduce, site);
}

void ReproducibleSum::round_into(const at::Tensor& result, std::int64_t divisor) {
  const auto type = kernel_type(part_type_);
  auto* const to = writable_bytes_of(result).data();
  if (added_up_) {
    add_up_kept();
    kernels::round_accumulators(type, bytes_of(bytes_).data(), {&to, 1}, static_cast<std::size_t>(parts_),
                                {.divisor = static_cast<std::size_t>(divisor)});
  } else if (used_ > 0) {
    round_at_once(type, kept(), to, parts_, divisor);
  } else {
    result.zero_();
  }
}

at::Tensor ReproducibleSum::rounded(std::int64_t divisor) {
  check_divisor(divisor);
  auto result = at::empty(sizes_, options_);
  round_into(result, divisor);
  return result;
}

at::Tensor ReproducibleSum::rounded_over(const Group& group, std::int64_t divisor, Group::Site site) {
  auto result = at::empty(sizes_, options_);
  round_over(group, result, divisor, site);
  return result;
}

void ReproducibleSum::round_over(const Group& group, const at::Tensor& result, std::int64_t divisor, Group::Site site) {
  check_engine(group);
  std::exception_ptr refused;  // the others hear of it before it is thrown
  try {
    check_divisor(divisor);
    (void)checked(result);
    if (at::has_internal_overlap(result) == at::MemOverlap::Yes) {
      refuse("ReproducibleSum: elements of the result lie in the same memory");
    }
  } catch (const Exception&) {
    refused = std::current_exception();
  }
  constexpr std::int64_t kAddedUp = -1;
  const auto mine =
      at::tensor({static_cast<std::int64_t>(c10::multiply_integers(sizes_)),
                  static_cast<std::int64_t>(c10::typeMetaToScalarType(options_.dtype())), divisor,
                  std::int64_t{refused == nullptr}, addends_, added_up_ ? kAddedUp : static_cast<std::int64_t>(used_),
                  std::int64_t{is_shared_with(group)}},
                 at::kLong);
  auto all = at::empty({group.size(), mine.numel()}, at::kLong);
  group.blocking().all_gather(all, mine, site).wait();
  if (refused) {
    std::rethrow_exception(refused);
  }
  check_alike(all);
  check_count(all.select(1, 4).sum().item<std::int64_t>());
  const auto kept_by_rank = all.select(1, 5).contiguous();
  const bool by_accumulators = kept_by_rank.eq(kAddedUp).any().item<bool>() || group.size() > kMostParts;
  const auto to =
      result.is_contiguous() && !result.is_conj() && !result.is_neg() ? result.detach() : at::empty(sizes_, options_);
  const auto cleared = c10::make_scope_exit([this] { clear(); });
  if (group.size() > 1 && all.select(1, 6).all().item<bool>()) {
    round_where_they_lie(group, to, divisor, site);
  } else if (by_accumulators) {
    add_up_over(group, site).wait();
    round_into(to, divisor);
  } else if (group.size() == 1) {
    round_into(to, divisor);
  } else {
    round_in_parts(group, to, divisor, kept_by_rank, site);
  }
  if (to.data_ptr() != result.data_ptr()) {
    result.detach().copy_(to);
  }
}

bool ReproducibleSum::is_shared_with(const Group& group) const {
  return group_ && group_->process_group() == group.process_group();
}

/// Into the result, if that is symmetric, too, or comes from other hosts anyway; else in place of the first addend.
void ReproducibleSum::round_where_they_lie(const Group& group, const at::Tensor& result, std::int64_t divisor,
                                           Group::Site site) {
  if (parts_ == 0) {
    return;
  }
  Summands summands{.sums = added_up_ ? bytes_ : at::Tensor()};
  for (std::size_t i = 0; i < used_; ++i) {
    summands.addends.push_back(kept_[i].narrow(0, 0, parts_));
  }
  const auto parts = (result.is_complex() ? at::view_as_real(result) : result).view({-1});
  const bool spans_hosts = plan::GroupShape::parse(group.shape()).hosts.size() > 1;
  const auto to = spans_hosts || is_symmetric(result, group) ? parts : kept_[0].narrow(0, 0, parts_);
  group.blocking().round_sums(to, summands, divisor, site).wait();
  if (to.data_ptr() != parts.data_ptr()) {
    parts.copy_(to);
  }
}

/// Every rank gets its part of all addends, rounds their sum, and gives it to all: in portions that stay in cache.
void ReproducibleSum::round_in_parts(const Group& group, const at::Tensor& result, std::int64_t divisor,
                                     const at::Tensor& kept_by_rank, Group::Site site) const {
  const std::int64_t ranks = group.size();
  const auto most = kept_by_rank.max().item<std::int64_t>();
  if (most == 0 || parts_ == 0) {
    result.zero_();
    return;
  }
  const auto* const counts = kept_by_rank.const_data_ptr<std::int64_t>();
  const auto total = kept_by_rank.sum().item<std::int64_t>();
  const auto of_parts = options_.dtype(part_type_);
  const auto each = (parts_ + ranks - 1) / ranks;
  // Of all addends so many bytes at once; more between hosts, where every operation begins with a greeting.
  const std::int64_t at_once = group.engine() == "mpi" ? 8 << 20 : 2 << 20;
  const auto bytes_of_each = std::clamp(at_once / total, at_once / 128, at_once / 8);
  const auto portion = std::min(each, bytes_of_each / static_cast<std::int64_t>(of_parts.dtype().itemsize()));
  const auto arrived = at::empty({total, portion}, of_parts);
  const auto mine = at::empty({portion}, of_parts);
  const auto nothing = at::empty({0}, of_parts);
  const auto here = group.blocking();
  const auto all = (result.is_complex() ? at::view_as_real(result) : result).view({-1});
  for (std::int64_t begin = 0; begin < each; begin += portion) {
    const auto length = std::min(portion, each - begin);
    const auto of_each = [&](const at::Tensor& whole) {  // what is not there at the end of a result has no elements
      std::vector<at::Tensor> portions;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const auto from = std::min(rank * each + begin, whole.numel());
        portions.push_back(whole.narrow(0, from, std::min(length, whole.numel() - from)));
      }
      return portions;
    };
    std::vector<const std::byte*> addends;
    for (std::int64_t number = 0; number < most; ++number) {
      std::vector<at::Tensor> come;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        come.push_back(nothing);
        if (number < counts[rank]) {
          come.back() = arrived[static_cast<std::int64_t>(addends.size())].narrow(0, 0, length);
          addends.push_back(bytes_of(come.back()).data());
        }
      }
      const auto index = static_cast<std::size_t>(number);
      auto go = index < used_ ? of_each(kept_[index]) : std::vector(static_cast<std::size_t>(ranks), nothing);
      here.all_to_all(std::move(come), std::move(go), site).wait();
    }
    round_at_once(kernel_type(part_type_), addends, writable_bytes_of(mine).data(), length, divisor);
    auto outputs = of_each(all);
    const auto rounded = mine.narrow(0, 0, outputs[to_index(group.rank())].numel());
    here.all_gather(std::move(outputs), rounded, site).wait();
  }
}

void ReproducibleSum::clear() {
  used_ = 0;
  addends_ = 0;
  added_up_ = false;
}

const at::Tensor& ReproducibleSum::bytes() {
  add_up_kept();
  return bytes_;
}

}  // namespace tutti
