#include "tutti/comm/reproducible_sum.h"

#include <array>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "tutti/comm/dtype.h"
#include "tutti/comm/exception.h"
#include "tutti/comm/prepare.h"
#include "tutti/kernels/reproducible.h"

namespace tutti {
namespace {

kernels::DType part_of(at::ScalarType type) { return value_or_throw(to_dtype(c10::toRealValueType(type))); }

constexpr auto kMost = static_cast<std::int64_t>(kernels::kMostAddends);

void check_count(std::int64_t addends) {
  if (addends > kMost) {
    refuse(fmt::format("ReproducibleSum: {} addends; at most {} can be added", addends, kMost));
  }
}

}  // namespace

ReproducibleSum::ReproducibleSum(const at::Tensor& like)
    : options_(like.options().requires_grad(false)), sizes_(like.sizes().vec()), parts_(like.numel()) {
  check_tensor(like, "ReproducibleSum");
  if (!like.is_floating_point() && !like.is_complex()) {
    refuse(
        "ReproducibleSum: a tensor of floats or complex numbers is needed; sums of integers are reproducible anyway");
  }
  parts_ *= like.is_complex() ? 2 : 1;
  const auto width = kernels::size_of(kernels::accumulator_of(part_of(like.scalar_type())));
  bytes_ = at::zeros({parts_ * static_cast<std::int64_t>(width)}, at::kByte);
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

void ReproducibleSum::add(const at::Tensor& tensor) {
  check_count(addends_ + 1);
  const auto plain = checked(tensor);
  const auto* const from = bytes_of(plain).data();
  kernels::accumulate(part_of(tensor.scalar_type()), {&from, 1}, writable_bytes_of(bytes_).data(),
                      static_cast<std::size_t>(parts_));
  ++addends_;
}

void ReproducibleSum::merge(const ReproducibleSum& other) {
  if (other.bytes_.numel() != bytes_.numel() || other.options_.dtype() != options_.dtype()) {
    refuse("ReproducibleSum: sums of different shapes or types cannot be merged");
  }
  check_count(addends_ + other.addends_);
  auto* const mine = writable_bytes_of(bytes_).data();
  const std::array<const std::byte*, 2> sources{mine, bytes_of(other.bytes_).data()};
  const auto type = part_of(c10::typeMetaToScalarType(options_.dtype()));
  kernels::reduce({.op = ReduceOp::sum, .dtype = kernels::accumulator_of(type)}, sources, {&mine, 1},
                  static_cast<std::size_t>(parts_));
  addends_ += other.addends_;
}

Work ReproducibleSum::all_reduce(const Group& group, Group::Site site) {
  check_count(addends_ * group.size());
  Reduce reduce(ReduceOp::sum);
  reduce.read_as = kernels::accumulator_of(part_of(c10::typeMetaToScalarType(options_.dtype())));
  if (group.engine() != "shm" && group.engine() != "local" && group.engine() != "mpi") {
    refuse(fmt::format("ReproducibleSum: a group of backend '{}' cannot add accumulators", group.engine()));
  }
  return group.all_reduce(bytes_, reduce, site);
}

at::Tensor ReproducibleSum::rounded(std::int64_t divisor) const {
  if (divisor < 1 || divisor > static_cast<std::int64_t>(kernels::kMostDivisor)) {
    refuse(fmt::format("ReproducibleSum: divisor {}; it is between 1 and {}", divisor, kernels::kMostDivisor));
  }
  auto out = at::empty(sizes_, options_);
  auto* const to = writable_bytes_of(out).data();
  kernels::round_accumulators(part_of(out.scalar_type()), bytes_of(bytes_).data(), {&to, 1},
                              static_cast<std::size_t>(parts_), {.divisor = static_cast<std::size_t>(divisor)});
  return out;
}

}  // namespace tutti
