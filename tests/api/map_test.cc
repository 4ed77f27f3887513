// spw_map, spw_map_store, spw_unmap: regions on stores of every kind, four times as large as the memory.
#include <sys/wait.h>

#include <csetjmp>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>

#include "region_kit.h"

namespace spw::testing {
namespace {

class MapTest : public RegionTest {};

TEST_F(MapTest, a_shared_region_shows_its_file_and_changes_it) {
  make_file();
  uint64_t* words = map(SPW_MAP_SHARED);
  ASSERT_EQ(spw_is_managed(words), 1);
  EXPECT_EQ(wrong_words(words, kWords, word_of), 0u);
  for (size_t i = 0; i < kWords; ++i) words[i] += i;
  EXPECT_EQ(wrong_words(words, kWords, [](size_t i) { return word_of(i) + i; }), 0u);
  ASSERT_EQ(spw_unmap(words), 0);
  for (size_t i = 0; i < kWords; i += 70'001) ASSERT_EQ(word_in_file(i), word_of(i) + i) << i;
  EXPECT_EQ(word_in_file(kWords - 1), word_of(kWords - 1) + kWords - 1);
}

TEST_F(MapTest, a_private_region_keeps_what_is_stored_to_itself) {
  make_file();
  uint64_t* words = map(SPW_MAP_PRIVATE);
  for (size_t i = 0; i < kWords; i += 3) words[i] = i;
  EXPECT_EQ(wrong_words(words, kWords, [](size_t i) { return i % 3 == 0 ? i : word_of(i); }), 0u);
  ASSERT_EQ(spw_unmap(words), 0);
  for (size_t i = 0; i < kWords; i += 90'000) ASSERT_EQ(word_in_file(i), word_of(i)) << i;
}

TEST_F(MapTest, a_store_to_a_read_only_region_ends_in_a_signal) {
  make_file();
  volatile uint64_t* words = map(SPW_MAP_READ_ONLY);
  EXPECT_EQ(words[7], word_of(7));
  static sigjmp_buf back;
  struct sigaction action{};
  action.sa_handler = [](int) { siglongjmp(back, 1); };
  action.sa_flags = SA_NODEFER;
  ASSERT_EQ(::sigaction(SIGSEGV, &action, nullptr), 0);
  bool caught = false;
  if (sigsetjmp(back, 1) == 0)
    words[7] = 1;
  else
    caught = true;
  EXPECT_TRUE(caught);
  EXPECT_EQ(words[7 + kBlock / 8], word_of(7 + kBlock / 8));
}

TEST_F(MapTest, a_part_of_a_file_begins_at_its_offset) {
  make_file(4 * kMega);
  uint64_t* words = map(SPW_MAP_SHARED, kMega + kBlock, 2 * kMega);
  EXPECT_EQ(words[0], word_of(2 * kMega / 8));
  words[kMega / 8] = 5;
  ASSERT_EQ(spw_unmap(words), 0);
  EXPECT_EQ(word_in_file(3 * kMega / 8), 5u);
}

TEST_F(MapTest, a_file_keeps_its_length_that_is_no_multiple_of_a_block) {
  make_file(kMega + 24);
  uint64_t* words = map(SPW_MAP_SHARED);
  EXPECT_EQ(words[kMega / 8 + 2], word_of(kMega / 8 + 2));
  EXPECT_EQ(words[kMega / 8 + 3], 0u) << "zeros behind the end";
  words[kMega / 8 + 1] = words[kMega / 8 + 3] = 77;
  ASSERT_EQ(spw_unmap(words), 0);
  EXPECT_EQ(std::filesystem::file_size(path_), kMega + 24);
  EXPECT_EQ(word_in_file(kMega / 8 + 1), 77u);
}

TEST_F(MapTest, a_file_is_made_and_lengthened_where_that_is_asked_for) {
  void* address = nullptr;
  EXPECT_EQ(spw_map(uri_.c_str(), 0, kDataBytes, SPW_MAP_SHARED, 0, &address), -ENOENT);
  EXPECT_NE(std::strstr(spw_error_message(), path_.c_str()), nullptr) << spw_error_message();
  uint64_t* words = map(SPW_MAP_SHARED | SPW_MAP_CREATE, kDataBytes);
  ASSERT_NE(words, nullptr);
  EXPECT_EQ(words[kWords - 1], 0u);
  words[kWords - 1] = 9;
  ASSERT_EQ(spw_unmap(words), 0);
  EXPECT_EQ(word_in_file(kWords - 1), 9u);
}

TEST_F(MapTest, anonymous_memory_is_zeros_and_holds_more_than_the_memory) {
  uint64_t* words = map_anonymous(kDataBytes);
  ASSERT_NE(words, nullptr);
  EXPECT_EQ(wrong_words(words, kWords, [](size_t) { return 0; }), 0u);
  for (size_t i = 0; i < kWords; ++i) words[i] = word_of(i);
  EXPECT_EQ(wrong_words(words, kWords, word_of), 0u);
  EXPECT_LE(statistics().cached_bytes, 16 * kMega);
  EXPECT_GT(statistics().evictions, 0u);
  EXPECT_EQ(spw_unmap(words), 0);
}

TEST_F(MapTest, a_sparse_store_is_there_when_it_is_mapped_again) {
  uri_ = "sparse:" + directory_ + "/segments?size=64M&segment=4M";
  uint64_t* words = map(SPW_MAP_SHARED);
  for (size_t i = 0; i < kWords; i += 100) words[i] = word_of(i);
  ASSERT_EQ(spw_unmap(words), 0);
  words = map(SPW_MAP_SHARED);
  EXPECT_EQ(wrong_words(words, kWords, [](size_t i) { return i % 100 == 0 ? word_of(i) : 0; }), 0u);
  EXPECT_EQ(spw_unmap(words), 0);
}

TEST_F(MapTest, larger_fills_come_in_with_fewer_misses) {
  make_file();
  auto misses_of = [&](size_t block_bytes) {
    uint64_t* words = map(SPW_MAP_SHARED, 0, 0, block_bytes);
    const uint64_t before = statistics().misses, waited_ns = statistics().waited_ns;
    // Not in order, so that no stream is seen: every 64th block of each 256 KiB, then the next one.
    size_t wrong = 0;
    for (size_t piece = 0; piece < 256; ++piece) {
      const size_t at = piece * 167 % 256 * (256 * 1024);
      for (size_t block = 0; block < 64; ++block) {
        const size_t i = (at + block * 37 % 64 * kBlock) / 8;
        wrong += words[i] != word_of(i);
      }
    }
    EXPECT_EQ(wrong, 0u);
    const uint64_t misses = statistics().misses - before;
    EXPECT_GT(statistics().waited_ns, waited_ns) << "blocks were read while the program waited";
    EXPECT_EQ(spw_unmap(words), 0);
    return misses;
  };
  const uint64_t alone = misses_of(0), together = misses_of(256 * 1024);
  EXPECT_LT(together * 4, alone) << together << " against " << alone;
}

TEST_F(MapTest, regions_of_different_blocks_are_aligned_to_them) {
  make_file(16 * kMega);
  uint64_t* small = map(SPW_MAP_READ_ONLY, kMega);
  uint64_t* large = map(SPW_MAP_READ_ONLY, 16 * kMega, 0, 8 * kMega);
  uint64_t* memory = map_anonymous(kMega, 4 * kMega);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % (8 * kMega), 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % (4 * kMega), 0u);
  EXPECT_EQ(large[16 * kMega / 8 - 1], word_of(16 * kMega / 8 - 1));
  EXPECT_EQ(small[5], word_of(5));
  for (void* region : {small, large, memory}) EXPECT_EQ(spw_unmap(region), 0);
}

TEST_F(MapTest, arguments_that_cannot_be_are_refused) {
  make_file(kMega);
  void* address = nullptr;
  auto refused = [&](const char* uri, uint64_t offset, size_t length, unsigned flags, size_t block) {
    int error = spw_map(uri, offset, length, flags, block, &address);
    EXPECT_NE(std::string(spw_error_message()), "");
    return error;
  };
  EXPECT_EQ(refused(uri_.c_str(), 0, 0, 0, 0), -EINVAL);
  EXPECT_EQ(refused(uri_.c_str(), 0, 0, SPW_MAP_SHARED | SPW_MAP_PRIVATE, 0), -EINVAL);
  EXPECT_EQ(refused(uri_.c_str(), 0, 0, SPW_MAP_SHARED | 64, 0), -EINVAL);
  EXPECT_EQ(refused(uri_.c_str(), 100, 0, SPW_MAP_SHARED, 0), -EINVAL);
  EXPECT_EQ(refused(uri_.c_str(), kMega, 0, SPW_MAP_SHARED, 0), -EINVAL);
  EXPECT_EQ(refused(uri_.c_str(), 0, 2 * kMega, SPW_MAP_SHARED, 0), -EINVAL);
  EXPECT_EQ(refused(uri_.c_str(), 0, 0, SPW_MAP_SHARED, 12'288), -EINVAL);
  EXPECT_EQ(refused(uri_.c_str(), 0, 0, SPW_MAP_SHARED, 16 * kMega), -EINVAL);
  EXPECT_EQ(refused("bogus:x", 0, 0, SPW_MAP_SHARED, 0), -EINVAL);
  EXPECT_EQ(refused(nullptr, 0, 0, 0, 0), -EINVAL);
  EXPECT_EQ(refused(nullptr, 0, kMega, SPW_MAP_SHARED, 0), -EINVAL);
  EXPECT_EQ(refused(nullptr, 4096, kMega, 0, 0), -EINVAL);
  EXPECT_EQ(spw_map(uri_.c_str(), 0, 0, SPW_MAP_SHARED, 0, nullptr), -EINVAL);
  EXPECT_EQ(spw_unmap(&address), -EINVAL);
  char* region = reinterpret_cast<char*>(map(SPW_MAP_SHARED));
  EXPECT_EQ(spw_unmap(region + kBlock), -EINVAL);
  EXPECT_EQ(spw_unmap(region), 0);
  EXPECT_EQ(spw_unmap(region), -EINVAL);
}

// A store over a file that moves odd numbers of bytes, and fails when it is told to.
struct FileCallbacks {
  int fd = -1;
  std::atomic<int> error{0};
  std::atomic<int> syncs{0};
  size_t at_most = 100'000'000;

  spw_store store(uint64_t bytes) {
    spw_store table{};
    table.size = sizeof table;
    table.context = this;
    table.bytes = bytes;
    table.read = [](void* context, void* buffer, size_t length, uint64_t offset) -> int64_t {
      auto* self = static_cast<FileCallbacks*>(context);
      if (self->error != 0) return -self->error;
      return ::pread(self->fd, buffer, std::min(length, self->at_most), static_cast<off_t>(offset));
    };
    table.write = [](void* context, const void* buffer, size_t length, uint64_t offset) -> int64_t {
      auto* self = static_cast<FileCallbacks*>(context);
      if (self->error != 0) return -self->error;
      return ::pwrite(self->fd, buffer, std::min(length, self->at_most), static_cast<off_t>(offset));
    };
    table.sync = [](void* context) {
      ++static_cast<FileCallbacks*>(context)->syncs;
      return 0;
    };
    return table;
  }
};

class MapStoreTest : public RegionTest {
 protected:
  void SetUp() override {
    RegionTest::SetUp();
    make_file();
    callbacks_.fd = ::open(path_.c_str(), O_RDWR);
    ASSERT_GE(callbacks_.fd, 0);
  }
  void TearDown() override {
    ::close(callbacks_.fd);
    RegionTest::TearDown();
  }
  uint64_t* map_callbacks(uint64_t bytes, unsigned flags = SPW_MAP_SHARED, uint64_t offset = 0,
                          size_t length = 0) {
    spw_store store = callbacks_.store(bytes);
    void* address = nullptr;
    EXPECT_EQ(spw_map_store(&store, offset, length, flags, 0, &address), 0) << spw_error_message();
    return static_cast<uint64_t*>(address);
  }
  FileCallbacks callbacks_;
};

TEST_F(MapStoreTest, functions_of_the_program_bring_blocks_in_and_take_them_back) {
  uint64_t* words = map_callbacks(kDataBytes);
  EXPECT_EQ(wrong_words(words, kWords, word_of), 0u);
  for (size_t i = 0; i < kWords; ++i) words[i] ^= i;
  EXPECT_EQ(wrong_words(words, kWords, [](size_t i) { return word_of(i) ^ i; }), 0u);
  ASSERT_EQ(spw_unmap(words), 0) << spw_error_message();
  EXPECT_GT(callbacks_.syncs, 0);
  for (size_t i = 0; i < kWords; i += 70'001) ASSERT_EQ(word_in_file(i), word_of(i) ^ i) << i;
}

TEST_F(MapStoreTest, few_bytes_at_a_time_and_an_early_end_are_no_errors) {
  callbacks_.at_most = 1000;
  uint64_t* words = map_callbacks(kDataBytes + kMega, SPW_MAP_SHARED, kDataBytes - 4 * kMega);
  for (size_t i = 0; i < 4 * kMega / 8; ++i) ASSERT_EQ(words[i], word_of((kDataBytes - 4 * kMega) / 8 + i));
  EXPECT_EQ(words[4 * kMega / 8], 0u);
  words[3] = 1;
  ASSERT_EQ(spw_unmap(words), 0);
  EXPECT_EQ(word_in_file((kDataBytes - 4 * kMega) / 8 + 3), 1u);
}

TEST_F(MapStoreTest, a_write_that_fails_is_told_and_nothing_is_lost) {
  uint64_t* words = map_callbacks(kDataBytes);
  words[1] = 11;
  callbacks_.error = ENOSPC;
  EXPECT_EQ(spw_flush(words, kBlock), -ENOSPC);
  EXPECT_NE(std::strstr(spw_error_message(), "the program's store"), nullptr) << spw_error_message();
  EXPECT_EQ(spw_unmap(words), -ENOSPC);
  EXPECT_EQ(words[1], 11u) << "the region stayed";
  callbacks_.error = 0;
  EXPECT_EQ(spw_unmap(words), 0) << spw_error_message();
  EXPECT_EQ(word_in_file(1), 11u);
}

TEST_F(MapStoreTest, what_is_not_saved_is_dropped) {
  uint64_t* words = map_callbacks(kDataBytes);
  words[1] = 11;
  callbacks_.error = EIO;
  EXPECT_EQ(spw_unmap_unsaved(words), 0);
  EXPECT_EQ(word_in_file(1), word_of(1));
}

TEST_F(MapStoreTest, threads_use_one_region_at_a_time) {
  uint64_t* words = map_callbacks(kDataBytes);
  std::vector<std::thread> threads;
  std::atomic<size_t> wrong{0};
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t i = t; i < kWords; i += 4 * 97) {
        wrong += words[i] != word_of(i);
        words[i] = i;
      }
      for (size_t i = t; i < kWords; i += 4 * 97) wrong += words[i] != i;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(spw_unmap(words), 0);
}

TEST_F(MapStoreTest, tables_that_cannot_be_are_refused) {
  void* address = nullptr;
  spw_store store = callbacks_.store(kDataBytes);
  EXPECT_EQ(spw_map_store(nullptr, 0, 0, SPW_MAP_SHARED, 0, &address), -EINVAL);
  EXPECT_EQ(spw_map_store(&store, 0, 0, SPW_MAP_SHARED | SPW_MAP_CREATE, 0, &address), -EINVAL);
  EXPECT_EQ(spw_map_store(&store, 0, kDataBytes + kBlock, SPW_MAP_SHARED, 0, &address), -EINVAL);
  store.write = nullptr;
  EXPECT_EQ(spw_map_store(&store, 0, 0, SPW_MAP_SHARED, 0, &address), -EINVAL);
  EXPECT_EQ(spw_map_store(&store, 0, 0, SPW_MAP_READ_ONLY, 0, &address), 0);
  EXPECT_EQ(spw_unmap(address), 0);
  store.read = nullptr;
  EXPECT_EQ(spw_map_store(&store, 0, 0, SPW_MAP_READ_ONLY, 0, &address), -EINVAL);
  store = callbacks_.store(kDataBytes);
  store.size = 8;
  EXPECT_EQ(spw_map_store(&store, 0, 0, SPW_MAP_SHARED, 0, &address), -EINVAL);
}

}  // namespace
}  // namespace spw::testing
