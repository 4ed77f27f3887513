#include "base/few_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace spw {
namespace {

TEST(FewBytes, copies_exactly_what_is_asked_for) {
  std::vector<uint8_t> from(kFewBytesMax + 64);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 37 + 1);
  for (size_t bytes = 0; bytes <= kFewBytesMax; ++bytes) {
    for (size_t at : {size_t{0}, size_t{1}, size_t{15}}) {
      std::vector<uint8_t> to(kFewBytesMax + 64, 0xEE);
      std::vector<uint8_t> expected = to;
      copy_few_bytes(to.data() + 16, from.data() + at, bytes);
      std::memcpy(expected.data() + 16, from.data() + at, bytes);
      ASSERT_EQ(to, expected) << bytes << " bytes from " << at;
    }
  }
}

}  // namespace
}  // namespace spw
