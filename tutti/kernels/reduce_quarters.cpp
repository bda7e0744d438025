#include "tutti/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/kernels/reduce_quarters.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/kernels/operations-inl.h"
#include "tutti/kernels/small_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

void reduce_quarters(const Reduction& reduction, const Buffers& buffers) {
  reduction.dtype == DType::float8_e4m3fn ? reduce_float<Widened<E4M3>>(reduction, buffers)
                                          : reduce_float<Widened<E5M2>>(reduction, buffers);
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernels {
namespace {
HWY_EXPORT(reduce_quarters);
}  // namespace

void reduce_quarters(const Reduction& reduction, const Buffers& buffers) {
  HWY_DYNAMIC_DISPATCH(reduce_quarters)(reduction, buffers);
}

}  // namespace tutti::kernels
#endif
