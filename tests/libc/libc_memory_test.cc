#include <gtest/gtest.h>

#include "fake_access.h"
#include "libc/bytes/memory.h"
#include "libc/managed.h"

namespace spw::libc {
namespace {

using testing::FakeManagedSpace;
using testing::Twin;

constexpr size_t kBytes = 40000;
constexpr int kRounds = 2000;

// Lengths of all magnitudes, so that none, one and many block edges are crossed.
size_t any_length(Rng& rng, size_t limit) {
  return rng.below(std::min<size_t>(limit, size_t{1} << rng.below(16)) + 1);
}

int sign(int value) { return (value > 0) - (value < 0); }

TEST(Memory, copies_agree_with_libc_for_every_mix_of_pointers) {
  FakeManagedSpace space;
  Rng rng(1);
  Twin a(space, kBytes), b(space, kBytes);
  a.randomise(rng);
  b.randomise(rng);
  for (int round = 0; round < kRounds; ++round) {
    size_t to = rng.below(kBytes), from = rng.below(kBytes);
    size_t n = any_length(rng, kBytes - std::max(to, from));
    memcpy(b.plain() + to, a.plain() + from, n);
    switch (rng.below(3)) {
      case 0:
        ASSERT_EQ(__spw_memcpy_v1(b.managed() + to, a.managed() + from, n), b.managed() + to);
        break;
      case 1:
        ASSERT_EQ(__spw_mempcpy_v1(b.managed() + to, a.plain() + from, n), b.managed() + to + n);
        break;
      default: {
        std::vector<char> out(n);
        __spw_memcpy_v1(out.data(), a.managed() + from, n);
        ASSERT_TRUE(std::equal(out.begin(), out.end(), a.plain() + from));
        __spw_memmove_v1(b.managed() + to, out.data(), n);
      }
    }
  }
  a.expect_same();
  b.expect_same();
}

TEST(Memory, overlapping_moves_agree_with_libc) {
  FakeManagedSpace space;
  Rng rng(2);
  Twin a(space, kBytes);
  a.randomise(rng);
  for (int round = 0; round < kRounds; ++round) {
    size_t from = rng.below(kBytes), distance = rng.below(uint64_t{1} << rng.below(14));
    size_t to = rng.below(2) ? std::min(kBytes - 1, from + distance) : from - std::min(from, distance);
    size_t n = any_length(rng, kBytes - std::max(to, from));
    memmove(a.plain() + to, a.plain() + from, n);
    ASSERT_EQ(__spw_memmove_v1(a.managed() + to, a.managed() + from, n), a.managed() + to);
    if (round % 100 == 0) a.expect_same();
  }
  a.expect_same();
}

TEST(Memory, fills_agree_with_libc) {
  FakeManagedSpace space;
  Rng rng(3);
  Twin a(space, kBytes);
  a.randomise(rng);
  for (int round = 0; round < kRounds / 4; ++round) {
    size_t at = rng.below(kBytes), n = any_length(rng, kBytes - at);
    int value = static_cast<int>(rng.below(1000));
    memset(a.plain() + at, value, n);
    ASSERT_EQ(__spw_memset_v1(a.managed() + at, value, n), a.managed() + at);
  }
  a.expect_same();
}

TEST(Memory, comparisons_agree_with_libc) {
  FakeManagedSpace space;
  Rng rng(4);
  Twin a(space, kBytes), b(space, kBytes);
  a.randomise(rng);
  std::copy(a.plain(), a.plain() + kBytes, b.plain());
  for (int i = 0; i < 20; ++i) b.plain()[rng.below(kBytes)] ^= 1;
  b.put();
  for (int round = 0; round < kRounds; ++round) {
    size_t at = rng.below(kBytes), n = any_length(rng, kBytes - at);
    int want = sign(memcmp(a.plain() + at, b.plain() + at, n));
    ASSERT_EQ(sign(__spw_memcmp_v1(a.managed() + at, b.managed() + at, n)), want);
    ASSERT_EQ(sign(__spw_memcmp_v1(a.plain() + at, b.managed() + at, n)), want);
    ASSERT_EQ(sign(__spw_memcmp_v1(a.managed() + at, b.plain() + at, n)), want);
    ASSERT_EQ(__spw_bcmp_v1(a.managed() + at, b.managed() + at, n) != 0, want != 0);
  }
}

TEST(Memory, byte_searches_agree_with_libc) {
  FakeManagedSpace space;
  Rng rng(5);
  Twin a(space, kBytes);
  std::fill(a.plain(), a.plain() + kBytes, 'x');
  for (int i = 0; i < 12; ++i) a.plain()[rng.below(kBytes)] = static_cast<char>('a' + i % 3);
  a.plain()[kBytes - 1] = 'z';
  a.put();
  auto offset = [](void* hit, char* base) { return hit == nullptr ? -1 : static_cast<char*>(hit) - base; };
  for (int round = 0; round < kRounds; ++round) {
    size_t at = rng.below(kBytes), n = any_length(rng, kBytes - at);
    int value = "abcxz"[rng.below(5)];
    ASSERT_EQ(offset(__spw_memchr_v1(a.managed() + at, value, n), a.managed()),
              offset(memchr(a.plain() + at, value, n), a.plain()));
    ASSERT_EQ(offset(__spw_memrchr_v1(a.managed() + at, value, n), a.managed()),
              offset(memrchr(a.plain() + at, value, n), a.plain()));
    ASSERT_EQ(offset(__spw_rawmemchr_v1(a.managed() + at, 'z'), a.managed()), static_cast<long>(kBytes - 1));
  }
}

TEST(Memory, sequence_searches_agree_with_libc) {
  FakeManagedSpace space;
  Rng rng(6);
  Twin a(space, kBytes), what(space, 9000);
  a.randomise(rng, 2, 'a');
  auto offset = [](void* hit, char* base) { return hit == nullptr ? -1 : static_cast<char*>(hit) - base; };
  int found = 0;
  for (int round = 0; round < 300; ++round) {
    size_t what_bytes = rng.below(uint64_t{1} << rng.below(14));
    size_t source = rng.below(kBytes - what_bytes);
    std::copy(a.plain() + source, a.plain() + source + what_bytes, what.plain());
    if (what_bytes > 0 && rng.below(4) == 0) what.plain()[rng.below(what_bytes)] ^= 1;
    what.put();
    size_t at = rng.below(kBytes), n = any_length(rng, kBytes - at);
    long want = offset(memmem(a.plain() + at, n, what.plain(), what_bytes), a.plain());
    found += want >= 0;
    ASSERT_EQ(offset(__spw_memmem_v1(a.managed() + at, n, what.managed(), what_bytes), a.managed()), want);
    ASSERT_EQ(offset(__spw_memmem_v1(a.managed() + at, n, what.plain(), what_bytes), a.managed()), want);
    ASSERT_EQ(offset(__spw_memmem_v1(a.plain() + at, n, what.managed(), what_bytes), a.plain()), want);
  }
  EXPECT_GT(found, 30);
}

TEST(Memory, copying_a_block_onto_itself_keeps_it) {
  FakeManagedSpace space;
  Rng rng(7);
  Twin a(space, kBytes);
  a.randomise(rng);
  __spw_memcpy_v1(a.managed(), a.managed(), kBytes);
  a.expect_same();
}

}  // namespace
}  // namespace spw::libc
