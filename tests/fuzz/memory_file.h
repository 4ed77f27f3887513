// A file in memory that code under test can open by a path, and a directory that is gone with the process.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/check.h"

namespace spw::fuzz {

class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    SPW_CHECK(fd_ >= 0);
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  void resize(uint64_t bytes) const { SPW_CHECK(::ftruncate(fd_, static_cast<off_t>(bytes)) == 0); }
  void write(std::string_view bytes, uint64_t at) const {
    SPW_CHECK(::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at)) ==
              static_cast<ssize_t>(bytes.size()));
  }
  void set(std::string_view bytes) const {
    resize(0);
    write(bytes, 0);
  }

 private:
  const int fd_;
  const std::string path_;
};

class Directory {
 public:
  Directory() {
    const char* const given = std::getenv("TMPDIR");
    path_ = std::string(given ? given : "/tmp") + "/spillway-fuzz-XXXXXX";
    SPW_CHECK(::mkdtemp(path_.data()) != nullptr);
  }
  ~Directory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace spw::fuzz
