#include "tutti/kernels/dtype.h"

#include <array>

namespace tutti::kernels {
namespace {

constexpr std::array<std::string_view, kDTypes> kNames{
    "float64", "float32",   "float16",    "bfloat16",      "float8_e4m3fn", "float8_e5m2", "int64",
    "int32",   "int16",     "int8",       "uint64",        "uint32",        "uint16",      "uint8",
    "bool",    "complex64", "complex128", "accumulator32", "accumulator64"};

}  // namespace

std::string_view to_string(DType dtype) { return kNames[static_cast<std::size_t>(dtype)]; }

}  // namespace tutti::kernels
