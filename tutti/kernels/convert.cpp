#include "tutti/kernels/convert.h"

#include <cstdint>
#include <cstring>

#include "tutti/kernels/families.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tutti/kernels/convert.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "tutti/kernels/small_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tutti::kernels::HWY_NAMESPACE {

template <Format F>
void widen_all(const std::byte* from, float* to, std::size_t count) {
  using C = Widened<F>;
  using T = typename F::Stored;
  const std::size_t n = hn::Lanes(Floats());
  FloatVector v0, v1, v2, v3;
  const auto put = [n](float* at, FloatVector a, FloatVector b, FloatVector c, FloatVector d) HWY_ATTR {
    hn::StoreU(a, Floats(), at);
    hn::StoreU(b, Floats(), at + n);
    hn::StoreU(c, Floats(), at + 2 * n);
    hn::StoreU(d, Floats(), at + 3 * n);
  };
  std::size_t at = 0;
  for (; at + C::block() <= count; at += C::block()) {
    C::load(reinterpret_cast<const T*>(from) + at, v0, v1, v2, v3);
    put(to + at, v0, v1, v2, v3);
  }
  if (at < count) {
    HWY_ALIGN T padded[4 * HWY_MAX_BYTES / sizeof(float)] = {};
    HWY_ALIGN float wide[4 * HWY_MAX_BYTES / sizeof(float)];
    std::memcpy(padded, from + at * sizeof(T), (count - at) * sizeof(T));
    C::load(padded, v0, v1, v2, v3);
    put(wide, v0, v1, v2, v3);
    std::memcpy(to + at, wide, (count - at) * sizeof(float));
  }
}

template <Format F>
void narrow_all(const float* from, std::byte* to, std::size_t count) {
  using C = Widened<F>;
  using T = typename F::Stored;
  const std::size_t n = hn::Lanes(Floats());
  FloatVector v0, v1, v2, v3;
  const auto convert = [&](const float* at, T* out) HWY_ATTR {
    v0 = hn::LoadU(Floats(), at);
    v1 = hn::LoadU(Floats(), at + n);
    v2 = hn::LoadU(Floats(), at + 2 * n);
    v3 = hn::LoadU(Floats(), at + 3 * n);
    C::encode(v0, v1, v2, v3);
    C::store(v0, v1, v2, v3, out);
  };
  std::size_t at = 0;
  for (; at + C::block() <= count; at += C::block()) {
    convert(from + at, reinterpret_cast<T*>(to) + at);
  }
  if (at < count) {
    HWY_ALIGN T padded[4 * HWY_MAX_BYTES / sizeof(float)];
    HWY_ALIGN float wide[4 * HWY_MAX_BYTES / sizeof(float)] = {};
    std::memcpy(wide, from + at, (count - at) * sizeof(float));
    convert(wide, padded);
    std::memcpy(to + at * sizeof(T), padded, (count - at) * sizeof(T));
  }
}

void to_float32(DType dtype, const std::byte* from, float* to, std::size_t count) {
  switch (dtype) {
    case DType::float16: return widen_all<Half>(from, to, count);
    case DType::bfloat16: return widen_all<UpperHalf>(from, to, count);
    case DType::float8_e4m3fn: return widen_all<E4M3>(from, to, count);
    default: return widen_all<E5M2>(from, to, count);
  }
}

void from_float32(DType dtype, const float* from, std::byte* to, std::size_t count) {
  switch (dtype) {
    case DType::float16: return narrow_all<Half>(from, to, count);
    case DType::bfloat16: return narrow_all<UpperHalf>(from, to, count);
    case DType::float8_e4m3fn: return narrow_all<E4M3>(from, to, count);
    default: return narrow_all<E5M2>(from, to, count);
  }
}

}  // namespace tutti::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tutti::kernels {
namespace {
HWY_EXPORT(to_float32);
HWY_EXPORT(from_float32);
}  // namespace

void to_float32(DType dtype, const std::byte* from, float* to, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(to_float32)(dtype, from, to, count);
}

void from_float32(DType dtype, const float* from, std::byte* to, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(from_float32)(dtype, from, to, count);
}

}  // namespace tutti::kernels
#endif
