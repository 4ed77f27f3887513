#include <gtest/gtest.h>

#include <thread>

#include "fake_access.h"
#include "libc/alloc/allocate.h"
#include "libc/alloc/quota.h"
#include "libc/alloc/rules.h"
#include "libc/bytes/memory.h"
#include "libc/managed.h"
#include "libc/real.h"

namespace spw::libc {
namespace {

using testing::FakeManagedSpace;

constexpr size_t kLarge = 100000, kSmall = 100;

TEST(Allocate, goes_by_the_threshold) {
  FakeManagedSpace space;
  void* small = __spw_malloc_v1(kSmall);
  void* large = __spw_malloc_v1(kLarge);
  EXPECT_FALSE(is_managed(small));
  EXPECT_TRUE(is_managed(large));
  EXPECT_GE(usable_bytes(large), kLarge);
  release(small);
  release(large);
}

TEST(Allocate, goes_managed_past_the_quota_and_native_again_below_it) {
  FakeManagedSpace space(64 * kKiB, native_bytes() + kMiB);
  std::vector<void*> native, all;
  while (true) {
    void* p = __spw_malloc_v1(1000);
    all.push_back(p);
    if (is_managed(p)) break;
    native.push_back(p);
  }
  EXPECT_NEAR(static_cast<double>(native.size()), 1040.0, 50.0);
  while (!native.empty()) {
    release(native.back());
    native.pop_back();
  }
  void* again = __spw_malloc_v1(1000);
  EXPECT_FALSE(is_managed(again));
  release(again);
  release(all.back());
}

TEST(Allocate, the_quota_counts_threads_that_ended) {
  uint64_t before = native_bytes();
  std::vector<void*> held;
  std::mutex mutex;
  for (int i = 0; i < 50; ++i)
    std::thread([&] {
      void* p = native_allocate(3000);
      std::lock_guard lock(mutex);
      held.push_back(p);
    }).join();
  EXPECT_GE(native_bytes(), before + 50 * 3000);
  for (void* p : held) release(p);
  EXPECT_LT(native_bytes(), before + 20000);
}

TEST(Allocate, calloc_is_zero_even_where_a_slot_was_used_before) {
  FakeManagedSpace space(16, 0);
  auto all_zero = [](char* p, size_t bytes) {
    std::vector<char> copy(bytes);
    __spw_memcpy_v1(copy.data(), p, bytes);
    return std::all_of(copy.begin(), copy.end(), [](char c) { return c == 0; });
  };
  for (size_t bytes : {100u, 5000u, 70000u}) {
    for (int round = 0; round < 3; ++round) {
      auto* p = static_cast<char*>(__spw_calloc_v1(bytes, 1));
      ASSERT_TRUE(is_managed(p));
      ASSERT_TRUE(all_zero(p, bytes)) << bytes;
      __spw_memset_v1(p, 7, bytes);
      release(p);
    }
  }
  EXPECT_EQ(__spw_calloc_v1(SIZE_MAX / 2, 3), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(Allocate, realloc_keeps_contents_across_both_kinds_of_memory) {
  FakeManagedSpace space(8000);
  Rng rng(1);
  std::vector<char> model;
  void* p = nullptr;
  for (int round = 0; round < 400; ++round) {
    size_t bytes = 1 + rng.below(uint64_t{1} << rng.below(18));
    p = round % 3 ? __spw_realloc_v1(p, bytes) : __spw_reallocarray_v1(p, bytes, 1);
    ASSERT_NE(p, nullptr);
    size_t old = std::min(model.size(), bytes);
    if (old > 0) {
      ASSERT_EQ(__spw_memcmp_v1(p, model.data(), old), 0);
    }
    model.resize(bytes);
    for (char& c : model) c = static_cast<char>(rng.next());
    __spw_memcpy_v1(p, model.data(), bytes);
    ASSERT_GE(usable_bytes(p), bytes);
  }
  EXPECT_EQ(__spw_realloc_v1(p, 0), nullptr);
}

TEST(Allocate, any_code_goes_by_size_where_the_whole_process_is_managed) {
  FakeManagedSpace space;
  void* foreign = process_allocate(kLarge, 16, nullptr);
  EXPECT_FALSE(is_managed(foreign));
  set_allocation_rules({64 * kKiB, UINT64_MAX, true});
  foreign = process_reallocate(foreign, 2 * kLarge, nullptr);
  EXPECT_TRUE(is_managed(foreign));
  void* zeros = process_allocate_zeroed(kLarge, 1, nullptr);
  EXPECT_TRUE(is_managed(zeros));
  void* small = process_allocate(kSmall, 16, nullptr);
  EXPECT_FALSE(is_managed(small));
  void* for_libc = process_allocate(kLarge, 16, reinterpret_cast<const void*>(real().read));
  EXPECT_FALSE(is_managed(for_libc));  // whose system calls would get it
  {
    InRuntime guard;
    EXPECT_FALSE(managed_for(kLarge, nullptr));
  }
  set_allocation_rules({});  // as in a forked child
  void* after = process_allocate(kLarge, 16, nullptr);
  void* redirected = allocate(kLarge, 16);
  EXPECT_FALSE(is_managed(after) || is_managed(redirected));
  for (void* p : {foreign, zeros, small, for_libc, after, redirected}) release(p);
}

TEST(Allocate, a_product_that_overflows_is_refused) {
  FakeManagedSpace space;
  EXPECT_EQ(allocate_zeroed(SIZE_MAX / 2, 3), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  set_allocation_rules({64 * kKiB, UINT64_MAX, true});
  EXPECT_EQ(process_allocate_zeroed(SIZE_MAX / 2, 3, nullptr), nullptr);
}

TEST(Allocate, foreign_realloc_moves_nothing_native_to_managed_memory) {
  FakeManagedSpace space;
  void* p = process_reallocate(nullptr, kSmall, nullptr);
  p = process_reallocate(p, kLarge, nullptr);
  EXPECT_FALSE(is_managed(p));
  p = reallocate(p, 2 * kLarge);
  EXPECT_TRUE(is_managed(p));
  p = process_reallocate(p, 3 * kLarge, nullptr);
  EXPECT_TRUE(is_managed(p));
  release(p);
}

TEST(Allocate, alignment_is_what_was_asked_for) {
  FakeManagedSpace space;
  for (size_t alignment = 8; alignment <= kMiB; alignment *= 2) {
    for (size_t bytes : {kSmall, kLarge}) {
      void* p = nullptr;
      ASSERT_EQ(__spw_posix_memalign_v1(&p, alignment, bytes), 0);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % alignment, 0u);
      ASSERT_EQ(is_managed(p), bytes == kLarge);
      release(p);
      p = __spw_memalign_v1(alignment, bytes);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % alignment, 0u);
      release(p);
    }
  }
  void* p = nullptr;
  EXPECT_EQ(__spw_posix_memalign_v1(&p, 24, 100), EINVAL);
  EXPECT_EQ(__spw_posix_memalign_v1(&p, 4, 100), EINVAL);
  p = __spw_valloc_v1(kSmall);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 4096, 0u);
  release(p);
}

TEST(Allocate, no_room_is_enomem) {
  FakeManagedSpace space;
  errno = 0;
  EXPECT_EQ(__spw_malloc_v1(FakeManagedSpace::kSpace * 2), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(__spw_malloc_v1(SIZE_MAX), nullptr);
  EXPECT_EQ(__spw_reallocarray_v1(nullptr, SIZE_MAX, SIZE_MAX), nullptr);
}

// A program with its own operator new keeps it, and a sanitizer's counts as the program's.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnNew = true;
#elif defined(__has_feature)
constexpr bool kOwnNew = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kOwnNew = false;
#endif

TEST(Allocate, operator_new_says_when_there_is_no_room) {
  if (kOwnNew) GTEST_SKIP() << "the sanitizer replaced operator new";
  FakeManagedSpace space;
  EXPECT_EQ(__spw__ZnwmRKSt9nothrow_t_v1(FakeManagedSpace::kSpace * 2, std::nothrow), nullptr);
  EXPECT_THROW(__spw__Znwm_v1(FakeManagedSpace::kSpace * 2), std::bad_alloc);
}

TEST(Allocate, a_new_handler_gets_its_chance) {
  if (kOwnNew) GTEST_SKIP() << "the sanitizer replaced operator new";
  FakeManagedSpace space;
  static void* ballast;
  ballast = __spw_malloc_v1(FakeManagedSpace::kSpace - 64 * kMiB);
  ASSERT_TRUE(is_managed(ballast));
  auto* before = std::set_new_handler([] {
    release(ballast);
    std::set_new_handler(nullptr);
  });
  void* p = __spw__Znam_v1(kGiB);
  EXPECT_TRUE(is_managed(p));
  release(p);
  std::set_new_handler(before);
}

TEST(Allocate, free_keeps_errno_and_takes_null) {
  FakeManagedSpace space;
  errno = 77;
  release(__spw_malloc_v1(kLarge));
  release(nullptr);
  EXPECT_EQ(errno, 77);
}

TEST(Allocate, without_a_context_all_is_native_and_the_initialiser_runs_once) {
  static int calls;
  calls = 0;
  access::set_initialiser([] {
    ++calls;
    // An allocation made by the runtime while it starts must not come back here.
    void* p = __spw_malloc_v1(kLarge);
    EXPECT_FALSE(is_managed(p));
    release(p);
  });
  for (int i = 0; i < 3; ++i) {
    void* p = __spw_malloc_v1(kLarge);
    EXPECT_FALSE(is_managed(p));
    release(p);
  }
  EXPECT_EQ(calls, 1);
}

TEST(Allocate, inside_the_runtime_all_is_native) {
  FakeManagedSpace space;
  InRuntime guard;
  void* p = __spw_malloc_v1(kLarge);
  EXPECT_FALSE(is_managed(p));
  release(p);
}

}  // namespace
}  // namespace spw::libc
