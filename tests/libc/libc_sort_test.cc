#include <gtest/gtest.h>

#include <set>
#include <string>

#include "fake_access.h"
#include "libc/bytes/sort.h"

namespace spw::libc {
namespace {

using testing::FakeManagedSpace;
using testing::Twin;

int by_first_word(const void* a, const void* b) {
  EXPECT_FALSE(is_managed(a) || is_managed(b));
  uint32_t x, y;
  memcpy(&x, a, 4);
  memcpy(&y, b, 4);
  return x < y ? -1 : x > y;
}

// Sorts the twin's managed half and its plain half (stably) and compares.
void sort_both(FakeManagedSpace& space, size_t count, size_t bytes, uint32_t values, Rng& rng) {
  Twin a(space, count * bytes);
  a.randomise(rng);
  for (size_t i = 0; i < count; ++i) {
    uint32_t key = static_cast<uint32_t>(rng.below(values));
    memcpy(a.plain() + i * bytes, &key, 4);
  }
  a.put();
  __spw_qsort_v1(a.managed(), count, bytes, by_first_word);
  std::vector<std::pair<uint32_t, size_t>> order(count);  // key, then place: what a stable sort makes of them
  for (size_t i = 0; i < count; ++i) {
    memcpy(&order[i].first, a.plain() + i * bytes, 4);
    order[i].second = i;
  }
  std::sort(order.begin(), order.end());
  std::vector<char> before(a.plain(), a.plain() + count * bytes);
  for (size_t i = 0; i < count; ++i)
    std::copy_n(before.begin() + order[i].second * bytes, bytes, a.plain() + i * bytes);
  a.expect_same();
}

TEST(Sort, arrays_of_every_size_are_sorted_and_stay_stable) {
  FakeManagedSpace space;
  Rng rng(1);
  for (size_t count : {0u, 1u, 2u, 3u, 100u, 10000u})
    sort_both(space, std::max<size_t>(count, 1), 12, 50, rng);
  sort_both(space, 300000, 8, 1u << 31, rng);  // a few runs
  sort_both(space, 20000, 100, 1000, rng);     // elements that cross blocks and buffers
  sort_both(space, 300, 30000, 100, rng);      // elements larger than a merge buffer
}

TEST(Sort, more_runs_than_one_pass_can_merge) {
  FakeManagedSpace space;
  Rng rng(2);
  // 70 runs of 1 MiB: two passes.
  constexpr size_t kElement = 64 * 1024;
  sort_both(space, 70 * kSortRunBytes / kElement, kElement, 1u << 30, rng);
}

TEST(Sort, in_place_where_there_is_no_room_for_a_second_array) {
  FakeManagedSpace space;
  Rng rng(3);
  void* ballast = space.heap->allocate(FakeManagedSpace::kSpace - 16 * kMiB).address;
  ASSERT_NE(ballast, nullptr);
  Twin a(space, 10 * kMiB);
  ASSERT_EQ(space.heap->allocate(10 * kMiB).address, nullptr);
  a.randomise(rng);
  constexpr size_t kElement = 1000;
  size_t count = a.bytes() / kElement;
  __spw_qsort_v1(a.managed(), count, kElement, by_first_word);
  auto sorted = a.contents();
  for (size_t i = 1; i < count; ++i)
    ASSERT_LE(by_first_word(sorted.data() + (i - 1) * kElement, sorted.data() + i * kElement), 0);
  std::multiset<std::string> before, after;
  for (size_t i = 0; i < count; ++i) {
    before.emplace(a.plain() + i * kElement, kElement);
    after.emplace(sorted.data() + i * kElement, kElement);
  }
  EXPECT_EQ(before, after);
  space.heap->free(ballast);
}

TEST(Sort, the_context_reaches_the_comparator) {
  FakeManagedSpace space;
  Rng rng(4);
  Twin a(space, 400000);
  a.randomise(rng);
  int calls = 0;
  __spw_qsort_r_v1(
      a.managed(), 100000, 4,
      [](const void* x, const void* y, void* context) {
        ++*static_cast<int*>(context);
        return by_first_word(y, x);
      },
      &calls);
  EXPECT_GT(calls, 100000);
  auto sorted = a.contents();
  for (size_t i = 4; i < sorted.size(); i += 4)
    ASSERT_GE(by_first_word(sorted.data() + i - 4, sorted.data() + i), 0);
}

TEST(Sort, bsearch_agrees_with_libc) {
  std::vector<uint32_t> values;
  Rng rng(5);
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<uint32_t>(rng.below(2000)));
  std::sort(values.begin(), values.end());
  for (size_t count : {0u, 1u, 2u, 7u, 1000u})
    for (uint32_t key = 0; key < 2000; key += 3) {
      auto* want = static_cast<uint32_t*>(bsearch(&key, values.data(), count, 4, by_first_word));
      auto* got = static_cast<uint32_t*>(__spw_bsearch_v1(&key, values.data(), count, 4, by_first_word));
      ASSERT_EQ(want == nullptr, got == nullptr);
      if (got != nullptr) {
        ASSERT_EQ(*got, key);
      }
    }
}

}  // namespace
}  // namespace spw::libc
