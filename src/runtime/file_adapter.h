// Buffered files as the interposed functions see them.
//
// Threads: any. Lifetime: the process's.
#pragma once

#include <string>
#include <string_view>

#include "front/file/descriptors.h"
#include "front/interpose/file_calls.h"

namespace spw::runtime {

class FileAdapter final : public interpose::FileCalls {
 public:
  // `make`: is called once, for the first file; nullptr: not now. `patterns`: of the paths of the files that are
  // buffered (path_patterns.h). `warn`: is told of what is lost if nobody acts on it.
  FileAdapter(front::Descriptors* (*make)(), std::string patterns, void (*warn)(std::string_view))
      : make_(make), patterns_(std::move(patterns)), warn_(warn) {}

  bool opened(int fd, int flags) override;
  bool is_buffered(int fd) override;
  bool is_wanted(int fd) override;
  int64_t read(int fd, std::span<const iovec> to, int64_t offset) override;
  int64_t write(int fd, std::span<const iovec> from, int64_t offset) override;
  int64_t seek(int fd, int64_t offset, int whence) override;
  int64_t resize(int fd, int64_t bytes) override;
  int64_t extend(int fd, int64_t bytes) override;
  int64_t sync(int fd, bool whole) override;
  int64_t flush(int fd) override;
  int64_t size(int fd) override;
  int64_t size_of(uint64_t device, uint64_t inode) override;
  int64_t resize_file(uint64_t device, uint64_t inode, int64_t bytes) override;
  int64_t close(int fd) override;
  void close_range(int first, int last) override;
  void flags_changed(int fd, int flags) override;
  void give_back(int fd) override;
  void duplicated(int from, int to) override;
  void settle() override;

 private:
  template <class With>
  int64_t with(int fd, With with_file);

  front::Descriptors* (*const make_)();
  Atomic<front::Descriptors*> descriptors_{nullptr};
  const std::string patterns_;
  void (*const warn_)(std::string_view);
};

}  // namespace spw::runtime
