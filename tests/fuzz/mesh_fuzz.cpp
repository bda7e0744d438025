#include <cstdint>
#include <string>

#include <fuzzer/FuzzedDataProvider.h>

#include "tutti/base/mesh_layout.h"

// Any text either is refused with a sentence, or is a layout whose own text gives the same layout again and whose
// coordinates and ranks are each other's inverse.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using tutti::MeshLayout;
  using tutti::require;
  FuzzedDataProvider input(data, size);
  const int world_size = input.ConsumeBool() ? input.ConsumeIntegral<int>() : input.ConsumeIntegralInRange<int>(1, 64);
  const std::string text = input.ConsumeRemainingBytesAsString();
  const auto layout = MeshLayout::parse(text, world_size);
  if (!layout) {
    require(!layout.error().message.empty(), "a refusal has a sentence");
    return 0;
  }
  require(layout.value().size() == world_size, "a layout covers its world");
  const auto again = MeshLayout::parse(layout.value().text(), world_size);
  require(again.ok() && again.value() == layout.value(), "a layout's text is that layout");
  for (int rank = 0; rank < world_size && rank < 100; ++rank) {
    const auto coordinate = layout.value().coordinate(tutti::Rank{rank});
    require(layout.value().rank(coordinate) == tutti::Rank{rank}, "coordinate and rank are inverse");
  }
  return 0;
}
