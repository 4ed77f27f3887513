// A program that interposes libc as libspillway.so does: the ordinary names on plain and managed pointers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "fake_access.h"
#include "libc/alloc/allocate.h"
#include "libc/alloc/quota.h"
#include "libc/bytes/memory.h"
#include "libc/managed.h"
#include "libc/map/mapping.h"

namespace spw::libc {
namespace {

using testing::FakeManagedSpace;

constexpr size_t kLarge = 100000;

TEST(Exports, ordinary_free_delete_and_realloc_take_managed_objects) {
  FakeManagedSpace space;
  uint64_t before = space.map->live_bytes();
  free(__spw_malloc_v1(kLarge));
  ::operator delete(__spw__Znwm_v1(kLarge));
  ::operator delete[](__spw__Znam_v1(kLarge), kLarge);
  ::operator delete(__spw__ZnwmSt11align_val_t_v1(kLarge, std::align_val_t{4096}), std::align_val_t{4096});
  void* p = __spw_malloc_v1(kLarge);
  EXPECT_GE(malloc_usable_size(p), kLarge);
  p = realloc(p, 2 * kLarge);
  EXPECT_TRUE(is_managed(p));
  p = realloc(p, 100);
  EXPECT_FALSE(is_managed(p));
  free(p);
  EXPECT_EQ(space.map->live_bytes(), before);
}

TEST(Exports, ordinary_allocation_stays_native_at_any_size) {
  FakeManagedSpace space(1, 0);
  for (size_t bytes : {size_t{1}, kLarge, size_t{1} << 24}) {
    void* pointers[] = {malloc(bytes),
                        calloc(bytes, 1),
                        memalign(64, bytes),
                        aligned_alloc(64, round_up(bytes, 64)),
                        valloc(bytes),
                        ::operator new(bytes),
                        reallocarray(nullptr, bytes, 1)};
    for (void* p : pointers) {
      EXPECT_NE(p, nullptr);
      EXPECT_FALSE(is_managed(p));
      free(p);
    }
  }
  void* p = nullptr;
  EXPECT_EQ(posix_memalign(&p, 64, 100), 0);
  free(p);
  EXPECT_EQ(posix_memalign(&p, 12, 100), EINVAL);
}

TEST(Exports, the_quota_sees_what_libraries_allocate) {
  uint64_t before = native_bytes();
  std::vector<std::string> strings;
  for (int i = 0; i < 1000; ++i) strings.emplace_back(1000, 'x');  // in libstdc++
  char* text = nullptr;
  ASSERT_GT(asprintf(&text, "%0200000d", 1), 0);  // in libc
  EXPECT_GT(native_bytes(), before + 1000000 + 200000 - 2 * kQuotaBatchBytes);
  free(text);
  strings.clear();
  strings.shrink_to_fit();
  EXPECT_LT(native_bytes(), before + 2 * kQuotaBatchBytes);
}

TEST(Exports, the_count_comes_back_after_threads_traded_objects) {
  uint64_t before = native_bytes();
  for (int round = 0; round < 30; ++round) {
    std::vector<void*> objects(2000);
    std::thread([&] {
      for (auto& p : objects) p = malloc(100);
    }).join();
    std::thread([&] {
      for (auto& p : objects) free(p);
    }).join();
  }
  EXPECT_NEAR(static_cast<double>(native_bytes()), static_cast<double>(before), 4.0 * kQuotaBatchBytes);
}

TEST(Exports, ordinary_input_and_output_take_managed_buffers) {
  FakeManagedSpace space;
  auto* p = static_cast<char*>(__spw_malloc_v1(kLarge));
  __spw_memset_v1(p, 'm', kLarge);
  FILE* file = tmpfile();
  EXPECT_EQ(write(fileno(file), p, kLarge), static_cast<ssize_t>(kLarge));
  EXPECT_EQ(pread(fileno(file), p + 10, 50000, 0), 50000);
  lseek(fileno(file), 0, SEEK_SET);
  EXPECT_EQ(fread(p, 1, kLarge, file), kLarge);
  EXPECT_EQ(fwrite(p, 1, 10, file), 10u);
  char plain[100];
  EXPECT_EQ(pread(fileno(file), plain, 100, 0), 100);
  EXPECT_EQ(plain[99], 'm');
  fclose(file);
  free(p);
}

TEST(Exports, the_ordinary_mapping_calls_take_managed_and_plain_ranges) {
  FakeManagedSpace space;
  void* p = __spw_mmap_v1(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_TRUE(is_managed(p));
  EXPECT_EQ(madvise(p, kLarge, MADV_DONTNEED), 0);
  EXPECT_EQ(mprotect(p, kLarge, PROT_READ), 0);
  EXPECT_EQ(msync(p, kLarge, MS_SYNC), 0);
  EXPECT_EQ(posix_madvise(p, kLarge, POSIX_MADV_WILLNEED), 0);
  p = mremap(p, kLarge, 2 * kLarge, MREMAP_MAYMOVE);
  EXPECT_EQ(munmap(p, 2 * kLarge), 0);
  void* q = mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(madvise(q, kLarge, MADV_DONTNEED), 0);
  q = mremap(q, kLarge, 2 * kLarge, MREMAP_MAYMOVE);
  EXPECT_EQ(mprotect(q, 4096, PROT_NONE), 0);
  EXPECT_EQ(munmap(q, 2 * kLarge), 0);
}

TEST(Exports, a_forked_child_frees_and_execs) {
  FakeManagedSpace space;
  void* p = __spw_malloc_v1(kLarge);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    access::set_context(nullptr);  // as the runtime's fork handler does
    free(p);
    free(__spw_malloc_v1(kLarge));
    execl("/bin/true", "true", nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  free(p);
}

}  // namespace
}  // namespace spw::libc
