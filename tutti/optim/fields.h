#pragma once
// Fields to and from LibTorch's archives: one list of a class's fields, visited, serves both ways.

#include <cstdint>
#include <string>
#include <type_traits>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/serialize/archive.h>

namespace tutti::optim {

struct FieldWriter {
  torch::serialize::OutputArchive& archive;

  template <class T>
  void operator()(const std::string& key, const T& value) const {
    if constexpr (std::is_same_v<T, at::Tensor>) {
      archive.write(key, value, /*is_buffer=*/true);
    } else if constexpr (std::is_enum_v<T>) {
      archive.write(key, c10::IValue(static_cast<std::int64_t>(value)));
    } else {
      archive.write(key, c10::IValue(value));
    }
  }
};

struct FieldReader {
  torch::serialize::InputArchive& archive;

  template <class T>
  void operator()(const std::string& key, T& value) const {
    if constexpr (std::is_same_v<T, at::Tensor>) {
      archive.read(key, value, /*is_buffer=*/true);
    } else {
      c10::IValue stored;
      archive.read(key, stored);
      if constexpr (std::is_enum_v<T>) {
        value = static_cast<T>(stored.toInt());
      } else {
        value = stored.to<T>();
      }
    }
  }
};

}  // namespace tutti::optim
