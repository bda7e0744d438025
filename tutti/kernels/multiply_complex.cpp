#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <limits>

#include "tutti/kernels/families.h"

namespace tutti::kernels {
namespace {

/// Its own product: that of std::complex depends on the compiler's flags where infinities meet.
template <std::floating_point T>
struct Complex {
  T real;
  T imaginary;

  friend Complex operator*(Complex a, Complex b) {
    return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
  }
};

constexpr std::size_t kTile = 256;  // stays in the first cache while every source is multiplied into it

template <std::floating_point T>
T one_nan(T value) {
  return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

template <std::floating_point T>
void multiply(const Buffers& buffers) {
  std::array<Complex<T>, kTile> products;
  for (std::size_t begin = 0; begin < buffers.count; begin += kTile) {
    const std::size_t length = std::min(kTile, buffers.count - begin);
    const std::size_t offset = begin * sizeof(Complex<T>);
    std::memcpy(products.data(), buffers.sources[0] + offset, length * sizeof(Complex<T>));
    for (const auto* bytes : buffers.sources.subspan(1)) {
      const auto* source = reinterpret_cast<const Complex<T>*>(bytes + offset);
      for (std::size_t i = 0; i < length; ++i) {
        products[i] = products[i] * source[i];
      }
    }
    for (std::size_t i = 0; i < length; ++i) {
      products[i] = {one_nan(products[i].real), one_nan(products[i].imaginary)};
    }
    for (auto* out : buffers.outs) {
      std::memcpy(out + offset, products.data(), length * sizeof(Complex<T>));
    }
  }
}

}  // namespace

void multiply_complex(const Reduction& reduction, const Buffers& buffers) {
  reduction.dtype == DType::complex64 ? multiply<float>(buffers) : multiply<double>(buffers);
}

}  // namespace tutti::kernels
