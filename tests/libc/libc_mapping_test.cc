#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fake_access.h"
#include "libc/bytes/memory.h"
#include "libc/managed.h"
#include "libc/map/advice.h"
#include "libc/map/mapping.h"
#include "libc/map/rights.h"
#include "store/file_store.h"

namespace spw::libc {
namespace {

using testing::FakeManagedSpace;

constexpr size_t kLarge = 1 << 20;

struct MappingTest : ::testing::Test {
  MappingTest() {
    space.context.open_file_store = [](int fd, bool) -> Result<std::unique_ptr<store::Store>> {
      auto opened = store::FileStore::open_descriptor(fd, "mapped");
      if (!opened) return opened.status();
      return std::unique_ptr<store::Store>(std::move(*opened));
    };
    char name[] = "/tmp/spw_mapping_XXXXXX";
    file = mkstemp(name);
    ::unlink(name);
    Rng rng(1);
    for (char& c : contents) c = static_cast<char>(rng.next());
    EXPECT_EQ(pwrite(file, contents.data(), contents.size(), 0), static_cast<ssize_t>(contents.size()));
  }
  ~MappingTest() override { close(file); }

  void* anonymous(size_t bytes) {
    return __spw_mmap_v1(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  char* map_file(int protection, int flags, off_t offset = 0) {
    return static_cast<char*>(
        __spw_mmap_v1(nullptr, contents.size() - offset, protection, flags, file, offset));
  }
  std::vector<char> copy_of(const void* managed, size_t bytes) {
    std::vector<char> out(bytes);
    __spw_memcpy_v1(out.data(), managed, bytes);
    return out;
  }
  bool all(const void* managed, size_t bytes, char value) {
    auto out = copy_of(managed, bytes);
    return std::all_of(out.begin(), out.end(), [&](char c) { return c == value; });
  }
  std::vector<char> file_contents() {
    std::vector<char> out(contents.size() + 10000);
    out.resize(static_cast<size_t>(pread(file, out.data(), out.size(), 0)));
    return out;
  }

  FakeManagedSpace space;
  int file;
  std::vector<char> contents = std::vector<char>(kLarge + 1234);
};

TEST_F(MappingTest, large_anonymous_memory_is_managed_zero_and_given_back) {
  char* p = static_cast<char*>(anonymous(kLarge));
  ASSERT_TRUE(is_managed(p));
  EXPECT_TRUE(all(p, kLarge, 0));
  __spw_memset_v1(p, 5, kLarge);
  EXPECT_EQ(unmap(p, kLarge), 0);
  EXPECT_EQ(space.map->live_bytes(), 0u);
}

TEST_F(MappingTest, what_must_be_the_kernels_stays_the_kernels) {
  struct {
    size_t bytes;
    int protection, flags;
  } cases[] = {{1000, PROT_READ | PROT_WRITE, 0},
               {kLarge, PROT_NONE, MAP_NORESERVE},
               {kLarge, PROT_READ | PROT_WRITE, MAP_STACK},
               {kLarge, PROT_READ, 0},
               {kLarge, PROT_READ | PROT_WRITE | PROT_EXEC, 0}};
  for (auto& c : cases) {
    void* p = __spw_mmap64_v1(nullptr, c.bytes, c.protection, MAP_PRIVATE | MAP_ANONYMOUS | c.flags, -1, 0);
    ASSERT_NE(p, MAP_FAILED);
    EXPECT_FALSE(is_managed(p));
    EXPECT_EQ(unmap(p, c.bytes), 0);
  }
  void* shared = __spw_mmap_v1(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_FALSE(is_managed(shared));
  EXPECT_EQ(unmap(shared, kLarge), 0);
  EXPECT_EQ(__spw_mmap_v1(nullptr, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
  EXPECT_EQ(__spw_mmap_v1(nullptr, kLarge, PROT_READ, MAP_PRIVATE, 9999, 0), MAP_FAILED);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(MappingTest, a_shared_file_gets_what_is_stored_by_msync_and_by_munmap_and_keeps_its_size) {
  char* p = map_file(PROT_READ | PROT_WRITE, MAP_SHARED);
  ASSERT_TRUE(is_managed(p));
  EXPECT_EQ(copy_of(p, contents.size()), contents);
  __spw_memset_v1(p + 5000, 'x', 10000);
  EXPECT_EQ(file_contents(), contents);
  EXPECT_EQ(sync_mapping(p, contents.size(), MS_SYNC), 0);
  std::fill_n(contents.begin() + 5000, 10000, 'x');
  EXPECT_EQ(file_contents(), contents);
  __spw_memset_v1(p + kLarge, 'y', 1234);
  EXPECT_EQ(unmap(p, contents.size()), 0);
  std::fill_n(contents.begin() + kLarge, 1234, 'y');
  EXPECT_EQ(file_contents(), contents);
  EXPECT_EQ(space.forgets, 1);
}

TEST_F(MappingTest, a_private_file_is_never_written) {
  char* p = map_file(PROT_READ | PROT_WRITE, MAP_PRIVATE, 8192);
  ASSERT_TRUE(is_managed(p));
  __spw_memset_v1(p, 'x', 300000);
  EXPECT_EQ(sync_mapping(p, 300000, MS_SYNC), 0);
  ASSERT_TRUE(space.map->sync(reinterpret_cast<uintptr_t>(p), 299008).is_ok());  // as if it were evicted
  EXPECT_TRUE(all(p, 300000, 'x'));
  auto rest = copy_of(p + 300000, contents.size() - 8192 - 300000);
  EXPECT_TRUE(std::equal(rest.begin(), rest.end(), contents.begin() + 8192 + 300000));
  EXPECT_EQ(advise_mapping(p, 8192, MADV_DONTNEED), 0);
  EXPECT_EQ(copy_of(p, 8192), std::vector<char>(contents.begin() + 8192, contents.begin() + 16384));
  EXPECT_TRUE(all(p + 8192, 1000, 'x'));
  EXPECT_EQ(unmap(p, contents.size() - 8192), 0);
  EXPECT_EQ(file_contents(), contents);
}

TEST_F(MappingTest, two_views_of_a_file_that_could_differ_are_refused) {
  char* p = map_file(PROT_READ | PROT_WRITE, MAP_SHARED);
  ASSERT_TRUE(is_managed(p));
  EXPECT_EQ(map_file(PROT_READ, MAP_SHARED), MAP_FAILED);
  EXPECT_EQ(errno, ENODEV);
  EXPECT_EQ(unmap(p, contents.size()), 0);
  char* q = map_file(PROT_READ, MAP_SHARED);
  char* r = map_file(PROT_READ, MAP_SHARED);
  // They change by calls on the file, which is open for writing.
  EXPECT_FALSE(is_managed(q) || is_managed(r));
  EXPECT_EQ(map_file(PROT_READ | PROT_WRITE, MAP_SHARED), MAP_FAILED);
  EXPECT_EQ(unmap(q, contents.size()), 0);
  EXPECT_EQ(unmap(r, contents.size()), 0);
  char* again = map_file(PROT_READ | PROT_WRITE, MAP_SHARED);
  EXPECT_TRUE(is_managed(again));
  EXPECT_EQ(unmap(again, contents.size()), 0);
}

TEST_F(MappingTest, without_a_store_files_are_the_kernels) {
  space.context.open_file_store = nullptr;
  char* p = map_file(PROT_READ, MAP_PRIVATE);
  ASSERT_FALSE(is_managed(p));
  EXPECT_EQ(memcmp(p, contents.data(), contents.size()), 0);
  EXPECT_EQ(unmap(p, contents.size()), 0);
}

TEST_F(MappingTest, parts_can_be_unmapped) {
  char* p = static_cast<char*>(anonymous(kLarge));
  __spw_memset_v1(p, 1, kLarge);
  EXPECT_EQ(unmap(p + 65536, 65536), 0);
  EXPECT_TRUE(all(p, 65536, 1));
  EXPECT_TRUE(all(p + 131072, kLarge - 131072, 1));
  EXPECT_EQ(sync_mapping(p, kLarge, MS_SYNC), -1);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(unmap(p, kLarge), 0);
  EXPECT_EQ(unmap(p + 1, kLarge), -1);
  EXPECT_EQ(space.map->live_bytes(), 0u);
}

TEST_F(MappingTest, remap_shrinks_grows_in_place_and_moves) {
  char* p = static_cast<char*>(anonymous(kLarge));
  __spw_memset_v1(p, 3, kLarge);
  EXPECT_EQ(remap(p, kLarge, kLarge / 2, 0, nullptr), p);
  EXPECT_EQ(remap(p, kLarge / 2, kLarge, 0, nullptr), p);
  EXPECT_TRUE(all(p, kLarge / 2, 3));
  EXPECT_TRUE(all(p + kLarge / 2, kLarge / 2, 0));
  void* wall = anonymous(kLarge);
  EXPECT_EQ(remap(p, kLarge, 2 * kLarge, 0, nullptr), MAP_FAILED);
  EXPECT_EQ(errno, ENOMEM);
  char* q = static_cast<char*>(remap(p, kLarge, 2 * kLarge, MREMAP_MAYMOVE, nullptr));
  ASSERT_NE(q, MAP_FAILED);
  EXPECT_NE(q, p);
  EXPECT_TRUE(all(q, kLarge / 2, 3));
  EXPECT_TRUE(all(q + kLarge / 2, kLarge, 0));
  EXPECT_EQ(remap(q, kLarge, kLarge, MREMAP_MAYMOVE | MREMAP_FIXED, q), MAP_FAILED);
  EXPECT_EQ(remap(p, kLarge, kLarge, 0, nullptr), MAP_FAILED);
  EXPECT_EQ(errno, EFAULT);
  unmap(wall, kLarge);
  unmap(q, 2 * kLarge);
  EXPECT_EQ(space.map->live_bytes(), 0u);
}

TEST_F(MappingTest, a_remapped_shared_file_is_the_same_file) {
  ASSERT_EQ(ftruncate(file, 8 << 20), 0);
  char* p = map_file(PROT_READ | PROT_WRITE, MAP_SHARED);
  ASSERT_TRUE(is_managed(p));
  __spw_memset_v1(p, 'a', 5000);
  char* q = static_cast<char*>(remap(p, contents.size(), 8 << 20, MREMAP_MAYMOVE, nullptr));
  ASSERT_NE(q, MAP_FAILED);
  EXPECT_TRUE(all(q, 5000, 'a'));
  __spw_memset_v1(q + (7 << 20), 'b', 5000);
  EXPECT_EQ(unmap(q, 8 << 20), 0);
  char byte;
  ASSERT_EQ(pread(file, &byte, 1, (7 << 20) + 4999), 1);
  EXPECT_EQ(byte, 'b');
}

TEST_F(MappingTest, dontneed_zeroes_and_the_rest_of_advice_is_harmless) {
  char* p = static_cast<char*>(anonymous(kLarge));
  __spw_memset_v1(p, 9, kLarge);
  EXPECT_EQ(advise_mapping(p + 8192, 16384, MADV_DONTNEED), 0);
  EXPECT_TRUE(all(p, 8192, 9));
  EXPECT_TRUE(all(p + 8192, 16384, 0));
  EXPECT_TRUE(all(p + 24576, 1000, 9));
  for (int advice : {MADV_NORMAL, MADV_SEQUENTIAL, MADV_RANDOM, MADV_HUGEPAGE, MADV_DONTDUMP})
    EXPECT_EQ(advise_mapping(p, kLarge, advice), 0);
  EXPECT_EQ(advise_mapping(p, kLarge, MADV_WILLNEED), 0);
  EXPECT_EQ(space.prefetches, 1);
  EXPECT_TRUE(all(p, 8192, 9));
  EXPECT_EQ(protect_mapping(p, kLarge, PROT_READ), 0);
  EXPECT_EQ(protect_mapping(p, kLarge, PROT_EXEC), -1);
  unmap(p, kLarge);
}

TEST_F(MappingTest, fixed_on_managed_memory_makes_it_anew) {
  char* p = static_cast<char*>(anonymous(kLarge));
  __spw_memset_v1(p, 9, kLarge);
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  EXPECT_EQ(__spw_mmap_v1(p + 65536, 65536, PROT_READ | PROT_WRITE, flags, -1, 0), p + 65536);
  EXPECT_TRUE(all(p + 65536, 65536, 0));
  EXPECT_TRUE(all(p, 65536, 9));
  EXPECT_EQ(__spw_mmap_v1(p, 65536, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 4096), p);
  EXPECT_EQ(copy_of(p, 65536), std::vector<char>(contents.begin() + 4096, contents.begin() + 4096 + 65536));
  EXPECT_TRUE(all(p + 131072, 65536, 9));
  EXPECT_EQ(__spw_mmap_v1(p, 65536, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0), MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  unmap(p, kLarge);
}

}  // namespace
}  // namespace spw::libc
