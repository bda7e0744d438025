#include "tutti/kernels/dtype.h"

#include <array>

namespace tutti::kernels {
namespace {

struct Facts {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<Facts, kDTypes> kFacts{{
    {"float64", 8},
    {"float32", 4},
    {"float16", 2},
    {"bfloat16", 2},
    {"float8_e4m3fn", 1},
    {"float8_e5m2", 1},
    {"int64", 8},
    {"int32", 4},
    {"int16", 2},
    {"int8", 1},
    {"uint64", 8},
    {"uint32", 4},
    {"uint16", 2},
    {"uint8", 1},
    {"bool", 1},
    {"complex64", 8},
    {"complex128", 16},
}};

}  // namespace

std::size_t size_of(DType dtype) { return kFacts[static_cast<std::size_t>(dtype)].bytes; }
std::string_view to_string(DType dtype) { return kFacts[static_cast<std::size_t>(dtype)].name; }

}  // namespace tutti::kernels
