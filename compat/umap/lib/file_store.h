// The store of umap(): a part of a file.
//
// Writes end with the part, even inside a page, and may make a file longer that is shorter than it. A descriptor with
// O_DIRECT works for any length: what it refuses goes through a second, buffered one.
// Threads: any. Lifetime: keeps a descriptor of its own.
#pragma once

#include "umap/store/Store.hpp"

namespace Umap {

class FileStore final : public Store {
 public:
  // Bytes [offset_bytes, offset_bytes + bytes) of the file. is_open()
  // is false, with errno, for a descriptor that is none.
  FileStore(int fd, off_t offset_bytes, std::size_t bytes);
  ~FileStore() override;
  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;

  bool is_open() const { return fd_ >= 0; }
  ssize_t read_from_store(char* buf, std::size_t nb, off_t off) override;
  ssize_t write_to_store(char* buf, std::size_t nb, off_t off) override;

 private:
  std::size_t inside(std::size_t nb, off_t off) const;

  int fd_ = -1;
  int buffered_fd_ = -1;  // maybe fd_
  const off_t offset_bytes_;
  const std::size_t bytes_;
};

}  // namespace Umap
