// spillway.hpp: regions, the allocator and the vector, on four times the memory.
#include <algorithm>
#include <vector>

#include "region_kit.h"
#include "spillway/spillway.hpp"

namespace spw::testing {
namespace {

class CppTest : public RegionTest {};

TEST_F(CppTest, a_region_unmaps_itself_and_what_it_holds_reaches_the_file) {
  {
    spillway::region region(uri_, SPW_MAP_SHARED | SPW_MAP_CREATE, 0, kMega);
    static_cast<uint64_t*>(region.data())[5] = 50;
    spillway::region moved = std::move(region);
    EXPECT_FALSE(region);
    EXPECT_TRUE(moved);
  }
  EXPECT_EQ(word_in_file(5), 50u);
  spillway::region again(uri_, SPW_MAP_SHARED);
  again.unmap();
  again.unmap();
  EXPECT_THROW(spillway::region("file:/nowhere/at/all", SPW_MAP_SHARED), std::system_error);
}

TEST_F(CppTest, a_container_of_managed_memory_holds_more_than_the_memory) {
  std::vector<uint64_t, spillway::allocator<uint64_t>> words(kWords);
  EXPECT_EQ(spw_is_managed(words.data()), 1);
  for (size_t i = 0; i < kWords; ++i) words[i] = word_of(i);
  EXPECT_EQ(wrong_words(words.data(), kWords, word_of), 0u);
  std::vector<int, spillway::allocator<int>> few{1, 2, 3};
  EXPECT_EQ(spw_is_managed(few.data()), 0);
  EXPECT_EQ(few.back(), 3);
}

TEST_F(CppTest, a_vector_grows_in_place_and_is_there_again) {
  const std::string uri = "sparse:" + directory_ + "/vector?size=256M&segment=16M";
  {
    spillway::vector<uint64_t> words(uri, 2 * kWords);
    const uint64_t* first = words.data();
    for (size_t i = 0; i < kWords; ++i) words.push_back(word_of(i));
    EXPECT_EQ(words.data(), first);
    words.push_back(words[7]);
    words.pop_back();
    words.sync();
  }
  spillway::vector<uint64_t> words(uri, 2 * kWords);
  ASSERT_EQ(words.size(), kWords);
  EXPECT_EQ(wrong_words(words.data(), kWords, word_of), 0u);
  words.resize(10);
  EXPECT_EQ(words.back(), word_of(9));
  words.resize(12);
  EXPECT_EQ(words[11], 0u);
  EXPECT_THROW(words.resize(2 * kWords + 1), std::length_error);
  EXPECT_EQ(words.size(), 12u);
}

TEST_F(CppTest, a_vector_refuses_what_is_not_its_own) {
  make_file(kMega);
  EXPECT_THROW(spillway::vector<uint64_t>(uri_, 100), std::runtime_error);
  spillway::vector<int> numbers(1000);
  numbers.resize(3);
  EXPECT_EQ(std::count(numbers.begin(), numbers.end(), 0), 3);
}

}  // namespace
}  // namespace spw::testing
