#include "tutti/kernels/stream.h"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

namespace tutti::kernels {
namespace {

/// From every place in a line to every other, of lengths below and above a line, on every kind of vector.
TEST(StreamCopy, CopiesThatAndNothingElse) {
  constexpr std::size_t kRoom = 512;
  std::vector<std::byte> from(kRoom);
  for (std::size_t i = 0; i < kRoom; ++i) {
    from[i] = static_cast<std::byte>(i * 37 + i / 256);
  }
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (const std::size_t bytes : {0, 1, 63, 64, 65, 127, 128, 200, 333}) {
      for (const std::size_t to_shift : {0, 1, 4, 33, 63}) {
        for (const std::size_t from_shift : {0, 1, 60}) {
          std::vector<std::byte> to(kRoom, std::byte{0xA5});
          auto expected = to;
          std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(from_shift), bytes,
                      expected.begin() + static_cast<std::ptrdiff_t>(to_shift));
          stream_copy(to.data() + to_shift, from.data() + from_shift, bytes);
          ASSERT_EQ(to, expected) << bytes << " bytes from " << from_shift << " to " << to_shift;
        }
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace
}  // namespace tutti::kernels
