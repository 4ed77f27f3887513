// umap.h, as its programs see it.
#include "umap/umap.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>
#include <vector>

#include "umap/store/SparseStore.h"

namespace {

constexpr std::size_t kPage = 4096;

class UmapTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "umap.XXXXXX";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // A file whose byte i is i / kPage + i % 251.
  int make_file(std::size_t bytes, int flags = O_RDWR) {
    std::string path = directory_ + "/file";
    int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600);
    std::vector<char> contents(bytes);
    for (std::size_t i = 0; i < bytes; ++i) contents[i] = byte_at(i);
    EXPECT_EQ(::pwrite(fd, contents.data(), bytes, 0), static_cast<ssize_t>(bytes));
    ::close(fd);
    return ::open(path.c_str(), flags);
  }
  static char byte_at(std::size_t i) { return static_cast<char>(i / kPage + i % 251); }
  std::vector<char> file_contents() {
    std::string path = directory_ + "/file";
    std::vector<char> contents(std::filesystem::file_size(path));
    int fd = ::open(path.c_str(), O_RDONLY);
    EXPECT_EQ(::read(fd, contents.data(), contents.size()), static_cast<ssize_t>(contents.size()));
    ::close(fd);
    return contents;
  }

  std::string directory_;
};

TEST_F(UmapTest, a_file_is_mapped_from_its_offset) {
  int fd = make_file(16 * kPage);
  auto* data =
      static_cast<char*>(umap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, UMAP_PRIVATE, fd, 5 * kPage));
  ASSERT_NE(data, UMAP_FAILED) << std::strerror(errno);
  ::close(fd);  // as with mmap, the mapping goes on
  for (std::size_t i = 0; i < 4 * kPage; ++i) ASSERT_EQ(data[i], byte_at(5 * kPage + i)) << i;
  data[kPage + 7] = 'x';
  EXPECT_EQ(umap_flush(), 0);
  std::vector<char> contents = file_contents();
  EXPECT_EQ(contents[6 * kPage + 7], 'x');
  contents[6 * kPage + 7] = byte_at(6 * kPage + 7);
  for (std::size_t i = 0; i < contents.size(); ++i) ASSERT_EQ(contents[i], byte_at(i)) << i;
  EXPECT_EQ(uunmap(data, 4 * kPage), 0);
}

TEST_F(UmapTest, a_length_that_is_no_multiple_of_the_page_is_kept_to) {
  int fd = make_file(3 * kPage, O_RDWR | O_DIRECT);
  if (fd < 0) GTEST_SKIP() << "no O_DIRECT here";
  constexpr std::size_t kLength = kPage + 100;
  auto* data = static_cast<char*>(umap(nullptr, kLength, PROT_READ | PROT_WRITE, UMAP_PRIVATE, fd, kPage));
  ASSERT_NE(data, UMAP_FAILED) << std::strerror(errno);
  EXPECT_EQ(data[kLength - 1], byte_at(kPage + kLength - 1));
  EXPECT_EQ(data[kLength], 0) << "zeros behind it";
  std::memset(data, 'y', 2 * kPage);
  EXPECT_EQ(uunmap(data, kLength), 0);
  ::close(fd);
  std::vector<char> contents = file_contents();
  ASSERT_EQ(contents.size(), 3 * kPage);
  for (std::size_t i = 0; i < contents.size(); ++i)
    ASSERT_EQ(contents[i], i >= kPage && i < kPage + kLength ? 'y' : byte_at(i)) << i;
}

TEST_F(UmapTest, a_file_that_is_shorter_reads_as_zeros_and_grows_as_it_is_written) {
  int fd = make_file(kPage + 10);
  auto* data = static_cast<char*>(umap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, UMAP_PRIVATE, fd, 0));
  ASSERT_NE(data, UMAP_FAILED);
  EXPECT_EQ(data[kPage + 9], byte_at(kPage + 9));
  EXPECT_EQ(data[kPage + 10], 0);
  data[3 * kPage] = 'z';
  EXPECT_EQ(uunmap(data, 4 * kPage), 0);
  ::close(fd);
  EXPECT_EQ(file_contents().at(3 * kPage), 'z');
}

TEST_F(UmapTest, arguments_that_cannot_be_are_refused_with_errno) {
  int fd = make_file(4 * kPage);
  auto refused = [&](std::size_t length, int prot, int flags, int file, off_t offset, void* addr = nullptr) {
    errno = 0;
    EXPECT_EQ(umap(addr, length, prot, flags, file, offset), UMAP_FAILED);
    return errno;
  };
  EXPECT_EQ(refused(0, PROT_READ, UMAP_PRIVATE, fd, 0), EINVAL);
  EXPECT_EQ(refused(kPage, PROT_READ | PROT_EXEC, UMAP_PRIVATE, fd, 0), EINVAL);
  EXPECT_EQ(refused(kPage, PROT_READ, MAP_SHARED, fd, 0), EINVAL);
  EXPECT_EQ(refused(kPage, PROT_READ, UMAP_PRIVATE | MAP_ANONYMOUS, fd, 0), EINVAL);
  EXPECT_EQ(refused(kPage, PROT_READ, UMAP_PRIVATE, fd, 100), EINVAL);
  EXPECT_EQ(refused(kPage, PROT_READ, UMAP_PRIVATE | UMAP_FIXED, fd, 0), EINVAL);
  EXPECT_EQ(refused(kPage, PROT_READ, UMAP_PRIVATE, -1, 0), EBADF);
  void* data = umap(nullptr, 2 * kPage, PROT_READ, UMAP_PRIVATE, fd, 0);
  ASSERT_NE(data, UMAP_FAILED);
  EXPECT_EQ(uunmap(data, kPage), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(uunmap(static_cast<char*>(data) + kPage, kPage), -1);
  EXPECT_EQ(uunmap(data, 2 * kPage), 0);
  EXPECT_EQ(uunmap(data, 2 * kPage), -1);
  void* before = umap(nullptr, kPage, PROT_READ, UMAP_PRIVATE, fd, 0);
  ASSERT_NE(before, UMAP_FAILED);
  EXPECT_EQ(uunmap(before, 2 * kPage), 0) << "it ends where the mapping does";
  ::close(fd);
}

// Moves at most 1000 bytes at a time, fails or throws on demand.
class MeanStore : public Umap::Store {
 public:
  explicit MeanStore(std::size_t bytes) : bytes_(bytes) {}
  ssize_t read_from_store(char* buf, std::size_t nb, off_t off) override {
    return move(nb, off,
                [&](std::size_t at, std::size_t count) { std::memcpy(buf, bytes_.data() + at, count); });
  }
  ssize_t write_to_store(char* buf, std::size_t nb, off_t off) override {
    return move(nb, off,
                [&](std::size_t at, std::size_t count) { std::memcpy(bytes_.data() + at, buf, count); });
  }
  std::vector<char>& bytes() { return bytes_; }
  int error = 0;
  int interruptions = 0;
  bool throws = false;

 private:
  template <class Copy>
  ssize_t move(std::size_t nb, off_t off, Copy copy) {
    if (throws) throw std::runtime_error("mean");
    if (error != 0 || interruptions > 0) return errno = interruptions-- > 0 ? EINTR : error, -1;
    auto at = static_cast<std::size_t>(off);
    std::size_t count = at >= bytes_.size() ? 0 : std::min({nb, bytes_.size() - at, std::size_t{1000}});
    copy(at, count);
    return static_cast<ssize_t>(count);
  }
  std::vector<char> bytes_;
};

void* map_store(Umap::Store& store, std::size_t bytes, off_t offset = 0) {
  return Umap::umap_ex(nullptr, bytes, PROT_READ | PROT_WRITE, UMAP_PRIVATE, -1, offset, &store);
}

TEST_F(UmapTest, short_transfers_and_interruptions_of_a_store_are_continued) {
  MeanStore store(4 * kPage);
  for (std::size_t i = 0; i < store.bytes().size(); ++i) store.bytes()[i] = byte_at(i);
  store.interruptions = 2;
  auto* data = static_cast<char*>(map_store(store, 3 * kPage, kPage));
  ASSERT_NE(data, UMAP_FAILED);
  for (std::size_t i = 0; i < 3 * kPage; ++i) ASSERT_EQ(data[i], byte_at(kPage + i)) << i;
  std::memset(data, 'm', 3 * kPage);
  EXPECT_EQ(uunmap(data, 3 * kPage), 0);
  EXPECT_EQ(
      std::count(store.bytes().begin(), store.bytes().end(), 'm'),
      3 * static_cast<long>(kPage) + std::count(store.bytes().begin(), store.bytes().begin() + kPage, 'm'));
}

TEST_F(UmapTest, errors_and_exceptions_of_a_store_become_errno) {
  MeanStore store(2 * kPage);
  store.error = ENXIO;
  EXPECT_EQ(map_store(store, 2 * kPage), UMAP_FAILED);
  EXPECT_EQ(errno, ENXIO);
  store.error = 0;
  store.throws = true;
  EXPECT_EQ(map_store(store, 2 * kPage), UMAP_FAILED);
  EXPECT_EQ(errno, EIO);
  store.throws = false;
  auto* data = static_cast<char*>(map_store(store, 2 * kPage));
  ASSERT_NE(data, UMAP_FAILED);
  data[0] = 'e';
  store.error = ENOSPC;
  EXPECT_EQ(umap_flush(), -1);
  EXPECT_EQ(errno, ENOSPC);
  store.error = 0;
  EXPECT_EQ(umap_flush(), 0);
  EXPECT_EQ(store.bytes()[0], 'e');
  store.bytes().resize(kPage);
  data[kPage] = 'f';
  EXPECT_EQ(uunmap(data, 2 * kPage), -1) << "a store that takes nothing has lost data";
  EXPECT_EQ(errno, EIO);
}

TEST_F(UmapTest, a_store_is_made_for_a_descriptor) {
  int fd = make_file(2 * kPage);
  std::unique_ptr<Umap::Store> store(Umap::Store::make_store(nullptr, 2 * kPage, kPage, fd));
  ASSERT_NE(store, nullptr);
  char byte = 0;
  EXPECT_EQ(store->read_from_store(&byte, 1, kPage + 3), 1);
  EXPECT_EQ(byte, byte_at(kPage + 3));
  EXPECT_EQ(Umap::Store::make_store(nullptr, kPage, kPage, -1), nullptr);
  EXPECT_EQ(errno, EBADF);
  ::close(fd);
}

TEST_F(UmapTest, threads_map_flush_prefetch_and_unmap_at_the_same_time) {
  constexpr int kThreads = 4;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        MeanStore store(4 * kPage);
        auto* data = static_cast<char*>(map_store(store, 4 * kPage));
        if (data == UMAP_FAILED) return void(++failures);
        data[kPage] = 't';
        umap_prefetch_item items[] = {{data}, {data + kPage}, {nullptr}};
        umap_prefetch(3, items);
        umap_fetch_and_pin(data, kPage);
        failures += umap_flush() != 0;
        failures += store.bytes()[kPage] != 't';
        failures += uunmap(data, 4 * kPage) != 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
}

class SparseStoreTest : public UmapTest {
 protected:
  void SetUp() override {
    UmapTest::SetUp();
    root_ = directory_ + "/sparse";
  }
  std::size_t segments() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(root_))
      count += entry.path().filename().string().starts_with("segment-");
    return count;
  }
  std::string root_;
};

TEST_F(SparseStoreTest, a_mapping_on_it_is_there_when_it_is_opened_again) {
  constexpr std::size_t kBytes = 8 << 20, kFile = 1 << 20;
  {
    Umap::SparseStore store(kBytes, 16384, root_, kFile);
    EXPECT_EQ(store.get_current_capacity(), kBytes);
    auto* data = static_cast<char*>(map_store(store, kBytes));
    ASSERT_NE(data, UMAP_FAILED);
    std::memset(data + 3 * kFile - 100, 's', 200);
    ASSERT_EQ(uunmap(data, kBytes), 0);
    EXPECT_EQ(segments(), 2u) << "only what was written has files";
    EXPECT_EQ(Umap::SparseStore::get_capacity(root_), kBytes) << "also while it is open";
    EXPECT_EQ(store.close_files(), 0);
    EXPECT_EQ(store.read_from_store(&root_[0], 1, 0), -1);
    EXPECT_EQ(errno, EBADF);
  }
  Umap::SparseStore store(root_, true);
  EXPECT_EQ(store.get_current_capacity(), kBytes);
  auto* data = static_cast<char*>(Umap::umap_ex(nullptr, kBytes, PROT_READ, UMAP_PRIVATE, -1, 0, &store));
  ASSERT_NE(data, UMAP_FAILED);
  EXPECT_EQ(data[3 * kFile - 101], 0);
  EXPECT_EQ(std::count(data, data + kBytes, 's'), 200);
  EXPECT_EQ(uunmap(data, kBytes), 0);
  char byte = 'w';
  EXPECT_EQ(store.write_to_store(&byte, 1, 0), -1) << "it was opened for reading";
}

TEST_F(SparseStoreTest, transfers_of_any_alignment_move_their_bytes_only) {
  Umap::SparseStore store(1 << 20, kPage, root_, 128 << 10);
  std::vector<char> model(1 << 20, 0), buffer(300'000);
  uint64_t state = 1;
  auto random = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 200; ++round) {
    std::size_t at = random(model.size()),
                want = 1 + random(std::min<std::size_t>(buffer.size(), model.size() - at));
    std::size_t done = 0;
    bool write = round % 2 == 0;
    std::memset(buffer.data(), round, want);
    while (done < want) {
      ssize_t moved =
          write ? store.write_to_store(buffer.data() + done, want - done, static_cast<off_t>(at + done))
                : store.read_from_store(buffer.data() + done, want - done, static_cast<off_t>(at + done));
      ASSERT_GT(moved, 0) << std::strerror(errno);
      done += static_cast<std::size_t>(moved);
    }
    if (write) std::memcpy(model.data() + at, buffer.data(), want);
    ASSERT_EQ(std::memcmp(model.data() + at, buffer.data(), want), 0) << round;
  }
  EXPECT_EQ(store.read_from_store(buffer.data(), 10, 1 << 20), 0) << "its end";
  EXPECT_EQ(store.write_to_store(buffer.data(), 10, 1 << 20), -1);
  EXPECT_EQ(errno, ENOSPC);
}

TEST_F(SparseStoreTest, what_cannot_be_opened_says_why_in_one_line) {
  auto message = [](auto make) -> std::string {
    try {
      make();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message([&] { Umap::SparseStore store(root_, true); }).find(root_), std::string::npos);
  EXPECT_NE(message([&] { Umap::SparseStore::get_capacity(root_); }).find("there is none"),
            std::string::npos);
  {
    Umap::SparseStore store(1 << 20, kPage, root_, 1 << 18);
  }
  EXPECT_NE(
      message([&] { Umap::SparseStore store(1 << 20, kPage, root_, 1 << 18); }).find("there is one already"),
      std::string::npos);
  std::filesystem::create_directory(directory_ + "/old");
  ::close(::open((directory_ + "/old/_metadata").c_str(), O_CREAT | O_WRONLY, 0600));
  EXPECT_NE(message([&] { Umap::SparseStore store(directory_ + "/old", true); }).find("LLNL"),
            std::string::npos);
}

}  // namespace
