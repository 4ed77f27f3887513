#include <gtest/gtest.h>

#include "fake_access.h"
#include "libc/alloc/allocate.h"
#include "libc/bytes/strings.h"

namespace spw::libc {
namespace {

using testing::FakeManagedSpace;
using testing::Twin;

constexpr size_t kBytes = 30000;
int sign(int value) { return (value > 0) - (value < 0); }

// Text of few letters with terminators at random places and one at the end.
void make_text(Twin& twin, Rng& rng, int terminators) {
  for (size_t i = 0; i < twin.bytes(); ++i) twin.plain()[i] = "abAB"[rng.below(4)];
  for (int i = 0; i < terminators; ++i) twin.plain()[rng.below(twin.bytes())] = 0;
  twin.plain()[twin.bytes() - 1] = 0;
  twin.put();
}

long offset(const char* hit, const char* base) { return hit == nullptr ? -1 : hit - base; }

TEST(Strings, lengths_and_character_searches_agree_with_libc) {
  FakeManagedSpace space;
  Rng rng(1);
  for (int text = 0; text < 10; ++text) {
    Twin a(space, kBytes);
    make_text(a, rng, text * 3);
    a.plain()[kBytes / 2] = 'q';
    a.put();
    for (int round = 0; round < 200; ++round) {
      size_t at = rng.below(kBytes), limit = rng.below(uint64_t{1} << rng.below(17));
      const char *m = a.managed() + at, *p = a.plain() + at;
      ASSERT_EQ(__spw_strlen_v1(m), strlen(p));
      ASSERT_EQ(__spw_strnlen_v1(m, limit), strnlen(p, limit));
      for (char value : {'a', 'q', 'z', '\0'}) {
        ASSERT_EQ(offset(__spw_strchr_v1(m, value), m), offset(strchr(p, value), p));
        ASSERT_EQ(offset(__spw_strrchr_v1(m, value), m), offset(strrchr(p, value), p));
        ASSERT_EQ(offset(__spw_strchrnul_v1(m, value), m), offset(strchrnul(p, value), p));
      }
    }
  }
}

TEST(Strings, comparisons_agree_with_libc_for_every_mix_of_pointers) {
  FakeManagedSpace space;
  Rng rng(2);
  int differing = 0;
  for (int text = 0; text < 20; ++text) {
    Twin a(space, kBytes), b(space, kBytes);
    make_text(a, rng, 5);
    std::copy(a.plain(), a.plain() + kBytes, b.plain());
    for (int i = 0; i < 4; ++i) b.plain()[rng.below(kBytes - 1)] ^= 0x20;
    b.put();
    for (int round = 0; round < 100; ++round) {
      size_t at = rng.below(kBytes), limit = rng.below(uint64_t{1} << rng.below(17));
      const char *am = a.managed() + at, *ap = a.plain() + at, *bm = b.managed() + at, *bp = b.plain() + at;
      int want = sign(strcmp(ap, bp));
      differing += want != 0;
      ASSERT_EQ(sign(__spw_strcmp_v1(am, bm)), want);
      ASSERT_EQ(sign(__spw_strcmp_v1(ap, bm)), want);
      ASSERT_EQ(sign(__spw_strcmp_v1(am, bp)), want);
      ASSERT_EQ(sign(__spw_strncmp_v1(am, bp, limit)), sign(strncmp(ap, bp, limit)));
      ASSERT_EQ(sign(__spw_strncmp_v1(ap, bm, limit)), sign(strncmp(ap, bp, limit)));
      ASSERT_EQ(sign(__spw_strcasecmp_v1(am, bm)), sign(strcasecmp(ap, bp)));
      ASSERT_EQ(sign(__spw_strncasecmp_v1(am, bp, limit)), sign(strncasecmp(ap, bp, limit)));
    }
  }
  EXPECT_GT(differing, 100);
}

TEST(Strings, copies_and_appends_agree_with_libc) {
  FakeManagedSpace space;
  Rng rng(3);
  for (int round = 0; round < 100; ++round) {
    Twin from(space, 9000), to(space, 2 * kBytes);
    make_text(from, rng, 2);
    make_text(to, rng, 10);
    size_t source = rng.below(9000), at = rng.below(kBytes), limit = rng.below(9000);
    const char *fm = from.managed() + source, *fp = from.plain() + source;
    char *tm = to.managed() + at, *tp = to.plain() + at;
    switch (rng.below(5)) {
      case 0:
        ASSERT_EQ(__spw_strcpy_v1(tm, fm), tm);
        strcpy(tp, fp);
        break;
      case 1:
        ASSERT_EQ(__spw_stpcpy_v1(tm, fp) - tm, stpcpy(tp, fp) - tp);
        break;
      case 2:
        ASSERT_EQ(__spw_strncpy_v1(tm, fm, limit), tm);
        strncpy(tp, fp, limit);
        break;
      case 3:
        if (strlen(tp) + strlen(fp) >= to.bytes() - at) break;
        ASSERT_EQ(__spw_strcat_v1(tm, fp), tm);
        strcat(tp, fp);
        break;
      default:
        if (strlen(tp) + strlen(fp) >= to.bytes() - at) break;
        ASSERT_EQ(__spw_strncat_v1(tm, fm, limit), tm);
        strncat(tp, fp, limit);
    }
    to.expect_same();
  }
}

TEST(Strings, substring_searches_agree_with_libc) {
  FakeManagedSpace space;
  Rng rng(4);
  int found = 0;
  for (int round = 0; round < 200; ++round) {
    Twin text(space, kBytes), what(space, 6000);
    make_text(text, rng, 3);
    size_t length = rng.below(uint64_t{1} << rng.below(13)), source = rng.below(kBytes - length);
    memcpy(what.plain(), text.plain() + source, length);
    what.plain()[length] = 0;
    what.put();
    size_t at = rng.below(kBytes);
    long want = offset(strstr(text.plain() + at, what.plain()), text.plain());
    found += want >= 0;
    ASSERT_EQ(offset(__spw_strstr_v1(text.managed() + at, what.managed()), text.managed()), want);
    ASSERT_EQ(offset(__spw_strstr_v1(text.managed() + at, what.plain()), text.managed()), want);
    ASSERT_EQ(offset(__spw_strstr_v1(text.plain() + at, what.managed()), text.plain()), want);
  }
  EXPECT_GT(found, 20);
}

TEST(Strings, duplicates_hold_the_same_text) {
  FakeManagedSpace space(1000);
  Rng rng(5);
  Twin a(space, 9000);
  make_text(a, rng, 0);
  char* all = __spw_strdup_v1(a.managed());
  EXPECT_TRUE(is_managed(all));
  EXPECT_EQ(__spw_strcmp_v1(all, a.plain()), 0);
  char* some = __spw_strndup_v1(a.managed() + 4000, 200);
  EXPECT_FALSE(is_managed(some));
  EXPECT_EQ(strlen(some), 200u);
  EXPECT_EQ(strncmp(some, a.plain() + 4000, 200), 0);
  release(all);
  release(some);
}

TEST(Strings, a_native_string_is_a_copy_only_where_it_must_be) {
  FakeManagedSpace space;
  Rng rng(6);
  Twin a(space, 9000);
  make_text(a, rng, 0);
  EXPECT_EQ(NativeString(a.plain()).get(), a.plain());
  EXPECT_STREQ(NativeString(a.managed()).get(), a.plain());
}

}  // namespace
}  // namespace spw::libc
