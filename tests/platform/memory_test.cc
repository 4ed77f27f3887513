#include "platform/memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/units.h"

namespace spw::platform {
namespace {

TEST(Memory, a_reservation_stands_at_its_address_and_replaces_nothing) {
  constexpr uintptr_t kAddress = uintptr_t{0x59}
                                 << 40;  // sanitizers let programs have it, and keep nothing there
  auto first = reserve_range(kAddress, kGiB);
  ASSERT_TRUE(first) << first.status().message();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first->data()), kAddress);
  auto second = reserve_range(kAddress + kMiB, kMiB);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.status().error(), EEXIST);
}

TEST(Memory, one_page_shows_at_two_addresses) {
  auto file = create_memory_file("spw-test", kMiB);
  ASSERT_TRUE(file);
  auto frames = map_file(*file, 0, kMiB, Protection::kReadWrite);
  auto range = reserve_range(0, kMiB);
  ASSERT_TRUE(frames && range);
  ASSERT_TRUE(map_file_at(range->data() + 4096, *file, 8192, 4096, Protection::kRead));
  frames->data()[8192] = std::byte{42};
  EXPECT_EQ(range->data()[4096], std::byte{42});
  ASSERT_TRUE(release_at(range->data() + 4096, 4096));
  EXPECT_DEATH(range->data()[4096] = std::byte{1}, "");
}

TEST(Memory, a_sealed_file_keeps_its_size) {
  auto open = create_memory_file("spw-test", kMiB);
  auto sealed = create_sealed_memory_file("spw-test", kMiB);
  auto other = open_file("/proc/self/exe", O_RDONLY);
  ASSERT_TRUE(open && sealed && other);
  EXPECT_FALSE(cannot_shrink(*open));
  EXPECT_TRUE(cannot_shrink(*sealed));
  EXPECT_FALSE(cannot_shrink(*other));
  for (const uint64_t bytes : {uint64_t{0}, 2 * kMiB}) {
    EXPECT_TRUE(set_file_size(*open, bytes));
    EXPECT_EQ(set_file_size(*sealed, bytes).error(), EPERM);
  }
  auto memory = map_file(*sealed, 0, kMiB, Protection::kReadWrite);
  ASSERT_TRUE(memory);
  memory->data()[kMiB - 1] = std::byte{1};
}

TEST(Memory, anonymous_memory_has_the_alignment_asked_for_and_forgets_what_it_does_not_need) {
  auto memory = map_anonymous(4 * kMiB, 2 * kMiB);
  ASSERT_TRUE(memory);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % (2 * kMiB), 0u);
  std::memset(memory->data(), 7, 4 * kMiB);
  ASSERT_TRUE(advise(memory->data(), 4 * kMiB, Advice::kDontNeed));
  EXPECT_EQ(memory->data()[kMiB], std::byte{0});
}

TEST(Memory, use_of_the_process_grows_with_what_it_touches) {
  auto before = process_memory();
  auto memory = map_anonymous(32 * kMiB);
  ASSERT_TRUE(before && memory);
  std::memset(memory->data(), 1, 32 * kMiB);
  auto after = process_memory();
  ASSERT_TRUE(after);
  EXPECT_GE(after->resident_anonymous_bytes, before->resident_anonymous_bytes + 24 * kMiB);
  EXPECT_GE(after->resident_peak_bytes, after->resident_anonymous_bytes);
}

}  // namespace
}  // namespace spw::platform
