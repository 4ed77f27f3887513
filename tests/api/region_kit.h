// What the tests of regions share: files of known words, and a store of callbacks over one.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "spillway/spillway.h"

namespace spw::testing {

constexpr size_t kMega = size_t{1} << 20;
constexpr size_t kDataBytes = 64 * kMega;  // four times the cap that these tests run with
constexpr size_t kWords = kDataBytes / 8;
constexpr size_t kBlock = 4096;

inline uint64_t word_of(size_t i) { return i * 0x9E3779B97F4A7C15u + 1; }

class RegionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = ::testing::TempDir() + "spillway_regions.XXXXXX";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    path_ = directory_ + "/data";
    uri_ = "file:" + path_;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // A file of word_of(0), word_of(1), ...
  void make_file(size_t bytes = kDataBytes) {
    int fd = ::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    ASSERT_GE(fd, 0);
    uint64_t words[512];
    for (size_t at = 0; at < bytes; at += sizeof words) {
      for (size_t i = 0; i < 512; ++i) words[i] = word_of(at / 8 + i);
      const size_t length = std::min(sizeof words, bytes - at);
      ASSERT_EQ(::write(fd, words, length), static_cast<ssize_t>(length));
    }
    ::close(fd);
  }
  uint64_t word_in_file(size_t i) const {
    uint64_t word = 0;
    int fd = ::open(path_.c_str(), O_RDONLY);
    EXPECT_EQ(::pread(fd, &word, 8, static_cast<off_t>(i * 8)), 8);
    ::close(fd);
    return word;
  }
  // Fails the test unless it works.
  uint64_t* map(unsigned flags, size_t length = 0, uint64_t offset = 0, size_t block_bytes = 0) {
    void* address = nullptr;
    EXPECT_EQ(spw_map(uri_.c_str(), offset, length, flags, block_bytes, &address), 0) << spw_error_message();
    return static_cast<uint64_t*>(address);
  }
  static uint64_t* map_anonymous(size_t bytes, size_t block_bytes = 0) {
    void* address = nullptr;
    EXPECT_EQ(spw_map(nullptr, 0, bytes, 0, block_bytes, &address), 0) << spw_error_message();
    return static_cast<uint64_t*>(address);
  }
  static spw_statistics statistics() {
    spw_statistics now{};
    now.size = sizeof now;
    EXPECT_EQ(spw_get_statistics(&now), 0);
    return now;
  }
  // The number of words that are not what `expected` says.
  template <class Expected>
  static size_t wrong_words(const uint64_t* words, size_t count, Expected expected) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) wrong += words[i] != static_cast<uint64_t>(expected(i));
    return wrong;
  }

  std::string directory_, path_, uri_;
};

}  // namespace spw::testing
