#include "tutti/rendezvous/request_shape.h"

#include <cstddef>
#include <optional>

#include <fmt/format.h>

#include "tutti/rendezvous/key_value.h"

namespace tutti::rendezvous {
namespace {

Error invalid(std::string sentence) { return {.code = Code::invalid_argument, .message = std::move(sentence)}; }

struct Shape {
  std::optional<std::size_t> keys;    ///< nullopt: any number
  std::optional<std::size_t> values;  ///< nullopt: as many as keys
};

Shape shape_of(Op op) {
  switch (op) {
    case Op::set: return {std::nullopt, std::nullopt};
    case Op::get:
    case Op::wait:
    case Op::check: return {std::nullopt, 0};
    case Op::count:
    case Op::list: return {0, 0};
    case Op::compare_set: return {1, 2};
    case Op::append:
    case Op::push: return {1, 1};
    case Op::add:
    case Op::erase:
    case Op::pop:
    case Op::queue_length:
    case Op::barrier: return {1, 0};
  }
  return {0, 0};
}

}  // namespace

std::string shown(std::string_view key) {
  constexpr std::size_t kMost = 100;
  std::string text = "'";
  for (const char c : key.substr(0, kMost)) {
    text += (c >= ' ' && c <= '~') ? c : '?';
  }
  return text + (key.size() > kMost ? "...'" : "'");
}

Status check_shape(const Request& request) {
  const auto [keys, values] = shape_of(request.op);
  if (request.keys.size() != keys.value_or(request.keys.size()) ||
      request.values.size() != values.value_or(request.keys.size())) {
    return invalid(fmt::format("store operation {} does not take {} keys and {} values", static_cast<int>(request.op),
                               request.keys.size(), request.values.size()));
  }
  for (const auto& key : request.keys) {
    if (key.size() > kMaxKeyBytes) {
      return invalid(
          fmt::format("the key {} has {} bytes; at most {} are allowed", shown(key), key.size(), kMaxKeyBytes));
    }
  }
  for (const auto& value : request.values) {
    if (value.size() > kMaxValueBytes) {
      return invalid(fmt::format("a value of {} bytes; at most {} are allowed", value.size(), kMaxValueBytes));
    }
  }
  return {};
}

}  // namespace tutti::rendezvous
