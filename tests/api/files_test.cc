// Buffered files, whole and striped, each case against what the same calls do to a string or to the kernel's file.
#include <sys/stat.h>

#include <cstring>
#include <sstream>
#include <thread>

#include "file_kit.h"

namespace spw::testing {
namespace {

class Files : public ::testing::TestWithParam<Layout>, public FileKit {
 protected:
  Files() : FileKit(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Layouts, Files, ::testing::Values(Layout{}, Layout{2, 4096}, Layout{3, 512 << 10}),
                         [](const auto& layout) { return name_of(layout.param); });

TEST_P(Files, what_is_written_is_read_and_reaches_the_file_when_it_is_closed) {
  const int fd = open();
  ASSERT_GE(fd, 0) << spw_error_message();
  EXPECT_EQ(spw_write(fd, "hello ", 6), 6);
  EXPECT_EQ(spw_write(fd, "world", 5), 5);
  EXPECT_EQ(read_at(fd, 0, 100), "hello world");
  EXPECT_EQ(spw_lseek(fd, 0, SEEK_CUR), 11);
  EXPECT_EQ(spw_lseek(fd, -5, SEEK_END), 6);
  char word[16] = {};
  EXPECT_EQ(spw_read(fd, word, sizeof word), 5);
  EXPECT_STREQ(word, "world");
  EXPECT_EQ(spw_close(fd), 0);
  EXPECT_EQ(on_disk(), "hello world");
}

TEST_P(Files, a_file_that_was_there_is_read_and_changed_in_place) {
  put_on_disk(std::string(10'000, 'x'));
  const int fd = open(O_RDWR);
  ASSERT_GE(fd, 0) << spw_error_message();
  EXPECT_EQ(read_at(fd, 9'990, 100), std::string(10, 'x'));
  expect_write(fd, 4'090, "0123456789");
  EXPECT_EQ(read_at(fd, 4'088, 14), "xx0123456789xx");
  EXPECT_EQ(spw_fsync(fd), 0);
  std::string wanted(10'000, 'x');
  wanted.replace(4'090, 10, "0123456789");
  EXPECT_EQ(on_disk(), wanted);
  EXPECT_EQ(spw_close(fd), 0);
}

TEST_P(Files, holes_and_what_lies_behind_an_old_end_are_zeros) {
  const int fd = open();
  expect_write(fd, 0, std::string(5'000, 'a'));
  ASSERT_EQ(spw_ftruncate(fd, 100), 0);
  expect_write(fd, 20'000, "end");
  const std::string wanted = std::string(100, 'a') + std::string(19'900, '\0') + "end";
  EXPECT_EQ(read_at(fd, 0, 30'000), wanted);
  ASSERT_EQ(spw_ftruncate(fd, 40'000), 0);
  EXPECT_EQ(spw_lseek(fd, 0, SEEK_END), 40'000);
  EXPECT_EQ(read_at(fd, 0, 50'000), wanted + std::string(40'000 - wanted.size(), '\0'));
  ASSERT_EQ(spw_ftruncate(fd, 0), 0);
  EXPECT_EQ(read_at(fd, 0, 10), "");
  expect_write(fd, 3, "x");
  EXPECT_EQ(spw_close(fd), 0);
  EXPECT_EQ(on_disk(), std::string("\0\0\0x", 4));
}

TEST_P(Files, descriptors_of_one_file_see_each_others_writes) {
  const int one = open(), two = open(O_RDONLY), three = open(O_WRONLY | O_APPEND);
  ASSERT_GE(three, 0) << spw_error_message();
  expect_write(one, 0, "first");
  EXPECT_EQ(spw_write(three, " second", 7), 7);
  EXPECT_EQ(read_at(two, 0, 100), "first second");
  EXPECT_EQ(spw_write(two, "x", 1), -EBADF);
  char c;
  EXPECT_EQ(spw_read(three, &c, 1), -EBADF);
  EXPECT_EQ(spw_ftruncate(two, 0), -EINVAL);
  for (const int fd : {one, two, three}) EXPECT_EQ(spw_close(fd), 0);
  EXPECT_EQ(on_disk(), "first second");
}

TEST_P(Files, pieces_are_moved_in_order) {
  const int fd = open();
  char a[] = "abc", b[] = "defgh", empty[1];
  iovec from[] = {{a, 3}, {empty, 0}, {b, 5}};
  EXPECT_EQ(spw_writev(fd, from, 3), 8);
  EXPECT_EQ(spw_lseek(fd, 1, SEEK_SET), 1);
  char c[3] = {}, d[10] = {};
  iovec to[] = {{c, 2}, {d, 9}};
  EXPECT_EQ(spw_readv(fd, to, 2), 7);
  EXPECT_STREQ(c, "bc");
  EXPECT_STREQ(d, "defgh");
  EXPECT_EQ(spw_close(fd), 0);
}

TEST_P(Files, wrong_calls_are_refused) {
  EXPECT_EQ(spw_open("/nowhere/at/all", O_RDWR, 0), -ENOENT);
  EXPECT_EQ(spw_open(directory().c_str(), O_RDONLY, 0), -EINVAL);
  char c;
  EXPECT_EQ(spw_read(0, &c, 1), -EBADF);
  EXPECT_EQ(spw_close(-1), -EBADF);
  const int fd = open();
  EXPECT_EQ(spw_lseek(fd, -1, SEEK_SET), -EINVAL);
  EXPECT_EQ(spw_pread(fd, &c, 1, -1), -EINVAL);
  EXPECT_EQ(spw_ftruncate(fd, -1), -EINVAL);
  EXPECT_EQ(spw_ftruncate(fd, int64_t{1} << 60), -EFBIG);
  EXPECT_EQ(spw_close(fd), 0);
  EXPECT_EQ(spw_close(fd), -EBADF);
}

// The last one is larger than the memory, and outgrows the addresses it began with.
TEST_P(Files, random_operations_end_as_on_a_string) {
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const size_t size_max = seed == 3 ? 24 * kMega : seed == 2 ? 3 * kMega : 100'000;
    std::string model;
    int fd = open(O_RDWR | O_CREAT | O_TRUNC);
    for (int i = 0; i < 700 && !HasFailure(); ++i) {
      const size_t offset = random() % size_max, bytes = random() % (random() % 8 == 0 ? 300'000 : 9'000);
      switch (random() % 16) {
        case 0: {
          const size_t size = random() % 3 == 0 ? random() % size_max : model.size() - model.size() / 8;
          ASSERT_EQ(spw_ftruncate(fd, static_cast<int64_t>(size)), 0) << spw_error_message();
          model.resize(size);
          break;
        }
        case 1:
          if (random() % 4 != 0) break;
          ASSERT_EQ(spw_fdatasync(fd), 0) << spw_error_message();
          ASSERT_TRUE(on_disk() == model) << "after " << i << " operations";
          break;
        case 2:
          ASSERT_EQ(spw_close(fd), 0) << spw_error_message();
          fd = open(O_RDWR);
          break;
        case 3:
        case 4: {
          const std::string text = random_text(random, bytes);
          ASSERT_GE(spw_lseek(fd, 0, SEEK_END), 0);
          ASSERT_EQ(spw_write(fd, text.data(), text.size()), static_cast<int64_t>(text.size()));
          model += text;
          break;
        }
        case 5:
        case 6:
        case 7:
        case 8:
        case 9: {
          const std::string text = random_text(random, bytes);
          expect_write(fd, offset, text);
          if (text.empty()) break;
          if (model.size() < offset + text.size()) model.resize(offset + text.size());
          model.replace(offset, text.size(), text);
          break;
        }
        default: {
          const std::string wanted = offset < model.size() ? model.substr(offset, bytes) : "";
          ASSERT_TRUE(read_at(fd, offset, bytes) == wanted) << "after " << i << " operations, at " << offset;
        }
      }
    }
    ASSERT_EQ(spw_close(fd), 0) << spw_error_message();
    ASSERT_TRUE(on_disk() == model);
  }
}

TEST_P(Files, threads_append_whole_records) {
  constexpr int kThreads = 4, kRecords = 3000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const int fd = open(O_WRONLY | O_CREAT | O_APPEND);
      for (int i = 0; i < kRecords; ++i) {
        char record[64];
        const int bytes = std::snprintf(record, sizeof record, "<%d %d %.*s>", t, i, i % 40,
                                        "........................................");
        EXPECT_EQ(spw_write(fd, record, static_cast<size_t>(bytes)), bytes);
      }
      EXPECT_EQ(spw_close(fd), 0);
    });
  for (std::thread& thread : threads) thread.join();
  std::istringstream text(on_disk());
  std::vector<int> next(kThreads, 0);
  for (std::string record; std::getline(text, record, '>');) {
    int t = -1, i = -1;
    ASSERT_EQ(std::sscanf(record.c_str(), "<%d %d ", &t, &i), 2) << record;
    ASSERT_EQ(next.at(static_cast<size_t>(t))++, i);
  }
  EXPECT_EQ(next, std::vector<int>(kThreads, kRecords));
}

// Each thread owns every fourth piece of a file of four times the memory; a reader looks for torn pieces meanwhile.
TEST_P(Files, threads_write_pieces_beyond_the_memory) {
  constexpr size_t kPiece = 1000, kPieces = 64 * kMega / kPiece, kThreads = 4;
  const int fd = open();
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 8000; ++i) {
        const size_t piece = random() % (kPieces / kThreads) * kThreads + t;
        const std::string text(kPiece, static_cast<char>('A' + random() % 26));
        expect_write(fd, piece * kPiece, text);
        ASSERT_TRUE(read_at(fd, piece * kPiece, kPiece) == text) << piece;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(spw_close(fd), 0);
  const std::string text = on_disk();
  for (size_t at = 0; at < text.size(); at += kPiece) {
    const std::string piece = text.substr(at, kPiece);
    ASSERT_EQ(piece.find_first_not_of(piece[0]), std::string::npos) << at;
  }
}

// Writers share blocks, and each reads from the disk what its own sync has confirmed. The file is twice the memory.
TEST_P(Files, what_a_sync_confirmed_is_on_disk_whoever_writes_beside) {
  constexpr size_t kThreads = 4, kSlots = 32 * kMega / 2048;
  const int fd = open();
  ASSERT_EQ(spw_ftruncate(fd, 32 * kMega), 0);
  std::vector<int> members;
  for (size_t i = 0; i < GetParam().members; ++i) members.push_back(::open(path(i).c_str(), O_RDONLY));
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (uint64_t version = 1; version <= 150; ++version) {
        std::vector<size_t> offsets;
        // Mostly in the same few blocks, where the others write too.
        for (int i = 0; i < 40; ++i)
          offsets.push_back((random() % (i % 4 == 0 ? kSlots : 32)) * 2048 + t * sizeof version);
        for (const size_t offset : offsets)
          ASSERT_EQ(spw_pwrite(fd, &version, sizeof version, static_cast<int64_t>(offset)), 8);
        ASSERT_EQ(spw_fdatasync(fd), 0) << spw_error_message();
        for (const size_t offset : offsets) {
          uint64_t found = 0;
          const Place place = place_of(offset);
          ASSERT_EQ(::pread(members[place.member], &found, sizeof found, place.offset), 8);
          ASSERT_EQ(found, version) << offset;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const int member : members) ::close(member);
  EXPECT_EQ(spw_close(fd), 0);
}

TEST_P(Files, a_file_in_memory_and_its_calls_see_each_other) {
  const int fd = open();
  const std::string text(300'000, 'a');
  expect_write(fd, 0, text);
  void *all, *part;
  ASSERT_EQ(spw_map_fd(fd, 0, 0, &all), 0) << spw_error_message();
  ASSERT_EQ(spw_map_fd(fd, 8192, 4096, &part), 0) << spw_error_message();
  auto* memory = static_cast<char*>(all);
  EXPECT_EQ(std::string(memory, text.size()), text);
  EXPECT_EQ(memory[text.size()], '\0');  // behind the end, on the last page
  memory[9000] = 'b';
  EXPECT_EQ(static_cast<char*>(part)[9000 - 8192], 'b');
  EXPECT_EQ(read_at(fd, 8999, 3), "aba");
  expect_write(fd, 100'000, "ccc");
  EXPECT_EQ(std::string(memory + 99'999, 5), "accca");
  ASSERT_EQ(spw_fsync(fd), 0) << spw_error_message();
  EXPECT_EQ(on_disk()[9000], 'b');
  EXPECT_EQ(spw_ftruncate(fd, 100), -EBUSY);
  EXPECT_EQ(spw_ftruncate(fd, 400'000), 0) << spw_error_message();
  EXPECT_EQ(spw_ftruncate(fd, int64_t{1} << 40), -ENOSPC);
  memory[200'000] = 'd';
  EXPECT_EQ(spw_close(fd), 0);
  memory[200'001] = 'e';  // it is open as long as it is mapped
  EXPECT_EQ(spw_unmap(all), 0);
  EXPECT_EQ(on_disk().substr(199'999, 4), "adea");
  EXPECT_EQ(static_cast<char*>(part)[0], 'a');
  EXPECT_EQ(spw_unmap(part), 0);
  EXPECT_EQ(spw_unmap(part), -EINVAL);
  EXPECT_EQ(on_disk().size(), 400'000u);
}

TEST_P(Files, a_mapped_file_is_not_emptied_and_grows_by_zeros) {
  const int fd = open();
  expect_write(fd, 0, std::string(10'000, 'a'));
  void *all, *begin;
  ASSERT_EQ(spw_map_fd(fd, 0, 0, &all), 0) << spw_error_message();
  ASSERT_EQ(spw_map_fd(fd, 0, 4096, &begin), 0) << spw_error_message();
  EXPECT_EQ(spw_fsync(fd), 0);
  EXPECT_EQ(open(O_RDWR | O_TRUNC), -EBUSY);
  EXPECT_EQ(on_disk().size(), 10'000u);
  EXPECT_EQ(spw_unmap(begin), 0);
  EXPECT_EQ(spw_ftruncate(fd, 5'000), -EBUSY);  // the longer one is there still
  static_cast<char*>(all)[10'500] = 'x';        // behind the end
  expect_write(fd, 11'000, "b");
  EXPECT_EQ(read_at(fd, 10'000, 2'000), std::string(1'000, '\0') + "b");
  EXPECT_EQ(spw_close(fd), 0);
  EXPECT_EQ(spw_unmap(all), 0);
  EXPECT_EQ(on_disk(), std::string(10'000, 'a') + std::string(1'000, '\0') + "b");
}

TEST_P(Files, what_cannot_be_mapped_is_refused) {
  const int fd = open(), read_only = open(O_RDONLY);
  expect_write(fd, 0, "x");
  void* memory = nullptr;
  EXPECT_EQ(spw_map_fd(fd, 4096, 0, &memory), -EINVAL);
  EXPECT_EQ(spw_map_fd(fd, 1, 0, &memory), -EINVAL);
  EXPECT_EQ(spw_map_fd(fd, 0, 4097, &memory), -EINVAL);
  EXPECT_EQ(spw_map_fd(fd, 0, 4096, nullptr), -EINVAL);
  EXPECT_EQ(spw_map_fd(read_only, 0, 0, &memory), -EACCES);
  EXPECT_EQ(spw_map_fd(-1, 0, 0, &memory), -EBADF);
  EXPECT_EQ(spw_close(fd), 0);
  EXPECT_EQ(spw_close(read_only), 0);
}

// Memory and calls change a file of twice the cap, each its own half of every block.
TEST_P(Files, a_mapped_file_beyond_the_memory_keeps_what_both_write) {
  constexpr size_t kSize = 32 * kMega, kPage = 4096;
  const int fd = open();
  ASSERT_EQ(spw_ftruncate(fd, kSize), 0);
  void* address;
  ASSERT_EQ(spw_map_fd(fd, 0, 0, &address), 0) << spw_error_message();
  auto* memory = static_cast<char*>(address);
  std::thread writer([&] {
    std::mt19937_64 random(1);
    for (int i = 0; i < 6000; ++i)
      expect_write(fd, random() % (kSize / kPage) * kPage, std::string(2048, 'w'));
  });
  std::vector<bool> stored(kSize / kPage);
  std::mt19937_64 random(2);
  for (int i = 0; i < 6000; ++i) {
    const size_t page = random() % (kSize / kPage);
    std::memset(memory + page * kPage + 2048, 's', 2048);
    stored[page] = true;
    if (i % 1000 == 0) EXPECT_EQ(spw_fdatasync(fd), 0) << spw_error_message();
  }
  writer.join();
  EXPECT_EQ(spw_close(fd), 0);
  EXPECT_EQ(spw_unmap(memory), 0);
  const std::string text = on_disk();
  std::mt19937_64 again(1);
  for (int i = 0; i < 6000; ++i)
    ASSERT_EQ(text.substr(again() % (kSize / kPage) * kPage, 2048), std::string(2048, 'w'));
  for (size_t page = 0; page < stored.size(); ++page)
    ASSERT_EQ(text.substr(page * kPage + 2048, 2048), std::string(2048, stored[page] ? 's' : '\0')) << page;
}

TEST_P(Files, managed_buffers_are_taken) {
  constexpr size_t kBytes = 8 * kMega;
  void* memory;
  ASSERT_EQ(spw_map(nullptr, 0, 2 * kBytes, 0, 0, &memory), 0);
  char *from = static_cast<char*>(memory), *to = from + kBytes;
  for (size_t i = 0; i < kBytes; ++i) from[i] = static_cast<char>(i / 4096 + i);
  const int fd = open();
  EXPECT_EQ(spw_pwrite(fd, from, kBytes, 5), static_cast<int64_t>(kBytes));
  EXPECT_EQ(spw_pread(fd, to, kBytes, 5), static_cast<int64_t>(kBytes));
  EXPECT_EQ(std::memcmp(from, to, kBytes), 0);
  EXPECT_EQ(spw_close(fd), 0);
  EXPECT_EQ(spw_unmap(memory), 0);
}

}  // namespace
}  // namespace spw::testing
