#include "tutti/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/kernels/reproducible_floats.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/kernels/pair_sum-inl.h"
#include "tutti/kernels/reproducible_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

template <class T>
class FloatSums {
 public:
  explicit FloatSums(const Buffers& buffers) : buffers_(buffers) {}

  void add() { add_to_sums<T>(buffers_); }
  void merge() { merge_sums<T>(buffers_); }
  void round(const Divisor& by) { round_sums<T>(by, buffers_); }

  void sum_at_once(const Divisor& by) {
    const bool is_pair = buffers_.sources.size() == 2;
    if (is_pair && by.value == 1) {
      reduce_with<Direct<T>>(PairSum<false>(), buffers_);
    } else if (is_pair && by.value == 2) {
      reduce_with<Direct<T>>(PairSum<true>(), buffers_);
    } else {
      sum_once<T>(by, buffers_);
    }
  }

 private:
  const Buffers& buffers_;
};

void sum_floats(SumTask task, DType dtype, std::size_t divisor, const Buffers& buffers) {
  dtype == DType::float32 ? run_task(task, divisor, FloatSums<float>(buffers))
                          : run_task(task, divisor, FloatSums<double>(buffers));
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
