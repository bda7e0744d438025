#include "tutti/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/kernels/reduce_halves.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/kernels/bfloat16s-inl.h"
#include "tutti/kernels/operations-inl.h"
#include "tutti/kernels/small_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

void reduce_halves(const Reduction& reduction, const Buffers& buffers) {
  reduction.dtype == DType::bfloat16 ? reduce_float<BFloat16s>(reduction, buffers)
                                     : reduce_float<Float16s>(reduction, buffers);
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernels {
namespace {
HWY_EXPORT(reduce_halves);
}  // namespace

void reduce_halves(const Reduction& reduction, const Buffers& buffers) {
  HWY_DYNAMIC_DISPATCH(reduce_halves)(reduction, buffers);
}

}  // namespace tutti::kernels
#endif
