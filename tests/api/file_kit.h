// What the tests of buffered files share: a file, or a striped one, in
// a directory of its own, seen by the calls and as it lies on the disk.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "spillway/spillway.h"

namespace spw::testing {

inline constexpr size_t kMega = size_t{1} << 20;

// How a file lies on the disk: whole, or in chunks on several files in turn.
struct Layout {
  size_t members = 1;
  size_t chunk_bytes = 512 << 10;
};
inline std::string name_of(const Layout& layout) {
  return layout.members == 1 ? "whole" : "striped_over_" + std::to_string(layout.members);
}
inline void PrintTo(const Layout& layout, std::ostream* out) { *out << name_of(layout); }

class FileKit {
 public:
  explicit FileKit(Layout layout) : layout_(layout) {
    directory_ = ::testing::TempDir() + "spillway_files.XXXXXX";
    EXPECT_NE(::mkdtemp(directory_.data()), nullptr);
    name_ = layout.members == 1 ? path(0) : "striped:chunk=" + std::to_string(layout.chunk_bytes);
    for (size_t i = 0; layout.members > 1 && i < layout.members; ++i) name_ += "," + path(i);
  }
  ~FileKit() { std::filesystem::remove_all(directory_); }
  FileKit(const FileKit&) = delete;
  FileKit& operator=(const FileKit&) = delete;

  const std::string& directory() const { return directory_; }
  const std::string& name() const { return name_; }
  std::string path(size_t member) const { return directory_ + "/data" + std::to_string(member); }
  int open(int flags = O_RDWR | O_CREAT) const { return spw_open(name_.c_str(), flags, 0600); }

  // Where a byte lies on the disk.
  struct Place {
    size_t member;
    off_t offset;
  };
  Place place_of(size_t offset) const {
    if (layout_.members == 1) return {0, static_cast<off_t>(offset)};
    const size_t chunk = offset / layout_.chunk_bytes;
    return {chunk % layout_.members,
            static_cast<off_t>(chunk / layout_.members * layout_.chunk_bytes + offset % layout_.chunk_bytes)};
  }

  static std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    std::string text(static_cast<size_t>(std::max<std::streamoff>(file.tellg(), 0)), '\0');
    file.seekg(0).read(text.data(), static_cast<std::streamsize>(text.size()));
    return text;
  }
  std::string on_disk() const {
    std::vector<std::string> members;
    size_t size = 0;
    for (size_t i = 0; i < layout_.members; ++i) size += members.emplace_back(text_of(path(i))).size();
    if (members.size() == 1) return members[0];
    std::string text;
    for (size_t chunk = 0; text.size() < size; ++chunk) {
      const std::string& member = members[chunk % members.size()];
      const size_t at = chunk / members.size() * layout_.chunk_bytes;
      const size_t bytes = std::min(layout_.chunk_bytes, size - text.size());
      EXPECT_GE(member.size(), at + bytes) << "its members have not the sizes that they have to have";
      if (member.size() < at + bytes) return text;
      text += member.substr(at, bytes);
    }
    return text;
  }
  void put_on_disk(const std::string& text) const {
    std::vector<std::string> members(layout_.members);
    if (members.size() == 1) members[0] = text;
    for (size_t at = 0; members.size() > 1 && at < text.size(); at += layout_.chunk_bytes)
      members[at / layout_.chunk_bytes % members.size()] += text.substr(at, layout_.chunk_bytes);
    for (size_t i = 0; i < members.size(); ++i) std::ofstream(path(i), std::ios::binary) << members[i];
  }

  static std::string read_at(int fd, uint64_t offset, size_t bytes) {
    std::string text(bytes, '?');
    const int64_t got = spw_pread(fd, text.data(), bytes, static_cast<int64_t>(offset));
    EXPECT_GE(got, 0) << spw_error_message();
    text.resize(static_cast<size_t>(std::max<int64_t>(got, 0)));
    return text;
  }
  static void expect_write(int fd, uint64_t offset, const std::string& text) {
    EXPECT_EQ(spw_pwrite(fd, text.data(), text.size(), static_cast<int64_t>(offset)),
              static_cast<int64_t>(text.size()))
        << spw_error_message();
  }

 private:
  const Layout layout_;
  std::string directory_, name_;
};

inline std::string random_text(std::mt19937_64& random, size_t bytes) {
  std::string text(bytes, '\0');
  uint64_t bits = 0;
  for (size_t i = 0; i < bytes; ++i) {
    bits = i % 8 == 0 ? random() : bits >> 8;
    text[i] = static_cast<char>('a' + bits % 26);
  }
  return text;
}

}  // namespace spw::testing
