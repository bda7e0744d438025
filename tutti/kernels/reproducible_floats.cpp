#include "tutti/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/kernels/reproducible_floats.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/kernels/reproducible_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

template <class T>
void add_floats(SumTask task, std::size_t divisor, const Buffers& buffers) {
  switch (task) {
    case SumTask::add: return add_to_sums<T>(buffers);
    case SumTask::merge: return merge_sums<T>(buffers);
    case SumTask::round: return round_sums<T>(Divisor(divisor), buffers);
    case SumTask::at_once: return sum_once<T>(Divisor(divisor), buffers);
  }
}

void sum_floats(SumTask task, DType dtype, std::size_t divisor, const Buffers& buffers) {
  dtype == DType::float32 ? add_floats<float>(task, divisor, buffers) : add_floats<double>(task, divisor, buffers);
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernels {
namespace {
HWY_EXPORT(sum_floats);
}  // namespace

void sum_floats(SumTask task, DType dtype, std::size_t divisor, const Buffers& buffers) {
  HWY_DYNAMIC_DISPATCH(sum_floats)(task, dtype, divisor, buffers);
}

}  // namespace tutti::kernels
#endif
