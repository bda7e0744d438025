#include "train/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "train/strict_json.h"

namespace tutti::train {
namespace {

using Json = nlohmann::json;

struct Named {
  Dtype dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array kDtypes{
    Named{Dtype::boolean, "BOOL", 1},    Named{Dtype::u8, "U8", 1},           Named{Dtype::i8, "I8", 1},
    Named{Dtype::f8_e5m2, "F8_E5M2", 1}, Named{Dtype::f8_e4m3, "F8_E4M3", 1}, Named{Dtype::u16, "U16", 2},
    Named{Dtype::i16, "I16", 2},         Named{Dtype::f16, "F16", 2},         Named{Dtype::bf16, "BF16", 2},
    Named{Dtype::u32, "U32", 4},         Named{Dtype::i32, "I32", 4},         Named{Dtype::f32, "F32", 4},
    Named{Dtype::u64, "U64", 8},         Named{Dtype::i64, "I64", 8},         Named{Dtype::f64, "F64", 8},
};

constexpr const char* kMetadata = "__metadata__";

Error bad(std::string sentence) { return {Code::invalid_argument, std::move(sentence)}; }

/// A list of whole numbers from 0 on that fit into 63 bits; nothing when it is not that.
std::optional<std::vector<std::int64_t>> numbers_of(const Json& block, const char* key) {
  const auto found = block.find(key);
  if (found == block.end() || !found->is_array()) {
    return std::nullopt;
  }
  std::vector<std::int64_t> numbers;
  for (const auto& value : *found) {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
      return std::nullopt;
    }
    numbers.push_back(value.get<std::int64_t>());
  }
  return numbers;
}

Result<BlockInfo> parse_block(const std::string& name, const Json& json) {
  if (!json.is_object() || json.size() != 3) {
    return bad(fmt::format("block {}: expected dtype, shape and data_offsets", shown(name)));
  }
  const auto dtype = json.find("dtype");
  const auto known =
      dtype != json.end() && dtype->is_string() ? find_dtype(dtype->get_ref<const std::string&>()) : std::nullopt;
  if (!known) {
    return bad(fmt::format("block {}: its dtype is {}, which is none that is known here", shown(name),
                           dtype == json.end() ? "not given" : shown(*dtype)));
  }
  auto shape = numbers_of(json, "shape");
  const auto offsets = numbers_of(json, "data_offsets");
  if (!shape || !offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1]) {
    return bad(
        fmt::format("block {}: shape and data_offsets are lists of whole numbers, and an end is not before its "
                    "beginning",
                    shown(name)));
  }
  const auto bytes = static_cast<std::size_t>((*offsets)[1] - (*offsets)[0]);
  if (bytes_of(*known, *shape) != bytes) {
    return bad(fmt::format("block {}: a shape of [{}] in {} does not take the {} bytes that it has", shown(name),
                           fmt::join(*shape, ", "), to_string(*known), bytes));
  }
  return BlockInfo{name, *known, std::move(*shape), static_cast<std::size_t>((*offsets)[0]), bytes};
}

Result<Metadata> parse_metadata(const Json& json) {
  Metadata metadata;
  const bool texts =
      json.is_object() && std::all_of(json.begin(), json.end(), [](const Json& v) { return v.is_string(); });
  if (!texts) {
    return bad("its metadata are not names and texts");
  }
  for (const auto& [name, value] : json.items()) {
    metadata.emplace(name, value.get<std::string>());
  }
  return metadata;
}

/// Whether the blocks, in order, are all of the data and nothing twice.
Status check_places(const std::vector<BlockInfo>& blocks, std::size_t data_bytes) {
  std::size_t at = 0;
  for (const auto& block : blocks) {
    if (block.begin != at) {
      return bad(fmt::format("block {} begins at byte {} of the data, and {} before it ends at {}", shown(block.name),
                             block.begin, block.begin > at ? "what lies" : "another block", at));
    }
    at += block.bytes;  // begins and lengths are below 2^63 both
    if (at > data_bytes) {
      return bad(fmt::format("block {} ends at byte {} of the data, of which there are {}", shown(block.name), at,
                             data_bytes));
    }
  }
  if (at != data_bytes) {
    return bad(fmt::format("{} bytes of data follow the header, and its blocks take {}", data_bytes, at));
  }
  return {};
}

}  // namespace

std::string_view to_string(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)].name; }

std::optional<Dtype> find_dtype(std::string_view name) {
  const auto* const found =
      std::find_if(kDtypes.begin(), kDtypes.end(), [&](const Named& d) { return d.name == name; });
  return found == kDtypes.end() ? std::nullopt : std::optional(found->dtype);
}

std::size_t bytes_of(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)].bytes; }

std::optional<std::size_t> bytes_of(Dtype dtype, const std::vector<std::int64_t>& shape) {
  auto bytes = static_cast<std::int64_t>(bytes_of(dtype));
  for (const auto length : shape) {
    if (length < 0 || __builtin_mul_overflow(bytes, length, &bytes)) {
      return std::nullopt;
    }
  }
  return static_cast<std::size_t>(bytes);
}

Result<Header> parse_header(std::string_view text, std::size_t data_bytes) {
  if (!text.starts_with('{')) {
    return bad("its header does not begin with {");
  }
  const auto json = parse_strictly(text);
  if (!json) {
    return bad(fmt::format("its header: {}", json.error().message));
  }
  Header header;
  for (const auto& [name, value] : json.value().items()) {
    if (name == kMetadata) {
      auto metadata = parse_metadata(value);
      if (!metadata) {
        return metadata.error();
      }
      header.metadata = std::move(metadata).value();
      continue;
    }
    auto block = parse_block(name, value);
    if (!block) {
      return block.error();
    }
    header.blocks.push_back(std::move(block).value());
  }
  // Empty ones may lie at the beginning of others.
  std::sort(header.blocks.begin(), header.blocks.end(), [](const BlockInfo& a, const BlockInfo& b) {
    return std::tie(a.begin, a.bytes, a.name) < std::tie(b.begin, b.bytes, b.name);
  });
  if (auto placed = check_places(header.blocks, data_bytes); !placed) {
    return placed.error();
  }
  return header;
}

Result<std::string> header_text(const Header& header) {
  auto json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) {
    json[kMetadata] = header.metadata;
  }
  for (const auto& block : header.blocks) {
    if (block.name == kMetadata || json.contains(block.name)) {
      return bad(fmt::format("two blocks cannot have the name {}", shown(block.name)));
    }
    json[block.name] = {{"dtype", to_string(block.dtype)},
                        {"shape", block.shape},
                        {"data_offsets", {block.begin, block.begin + block.bytes}}};
  }
  try {
    auto text = json.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const nlohmann::json::type_error&) {
    return bad("names and metadata must be UTF-8");
  }
}

}  // namespace tutti::train
