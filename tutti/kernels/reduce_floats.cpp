#include "tutti/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/kernels/reduce_floats.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/kernels/operations-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

void reduce_floats(const Reduction& reduction, const Buffers& buffers) {
  reduction.dtype == DType::float32 ? reduce_float<Direct<float>>(reduction, buffers)
                                    : reduce_float<Direct<double>>(reduction, buffers);
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernels {
namespace {
HWY_EXPORT(reduce_floats);
}  // namespace

void reduce_floats(const Reduction& reduction, const Buffers& buffers) {
  HWY_DYNAMIC_DISPATCH(reduce_floats)(reduction, buffers);
}

}  // namespace tutti::kernels
#endif
