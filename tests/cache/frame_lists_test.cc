#include "cache/eviction/frame_lists.h"

#include <gtest/gtest.h>

namespace spw::cache {
namespace {

TEST(FrameLists, a_frame_leaves_its_list_for_another) {
  FrameLists lists(4, 2);
  for (uint32_t frame = 0; frame < 3; ++frame) lists.move_to_front(0, frame);
  EXPECT_EQ(lists.back(0), 0u);
  lists.move_to_front(1, 0);
  EXPECT_EQ(lists.back(0), 1u);
  EXPECT_EQ(lists.back(1), 0u);
  EXPECT_EQ(lists.check_invariants(0), 2u);
  EXPECT_EQ(lists.check_invariants(1), 1u);
}

TEST(FrameLists, the_only_frame_of_a_list_is_in_it_until_it_is_unlinked) {
  FrameLists lists(1, 1);
  EXPECT_FALSE(lists.contains(0));
  lists.move_to_front(0, 0);
  lists.move_to_front(0, 0);
  EXPECT_TRUE(lists.contains(0));
  EXPECT_EQ(lists.check_invariants(0), 1u);
  lists.unlink(0);
  lists.unlink(0);
  EXPECT_FALSE(lists.contains(0));
  EXPECT_TRUE(lists.is_empty(0));
  EXPECT_EQ(lists.check_invariants(0), 0u);
}

}  // namespace
}  // namespace spw::cache
