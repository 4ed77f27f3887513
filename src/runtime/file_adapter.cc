#include "runtime/file_adapter.h"

#include <fcntl.h>

#include "base/in_runtime.h"
#include "runtime/path_patterns.h"

namespace spw::runtime {

using front::Descriptors;
using interpose::kNotBuffered;
using interpose::kOwnPlace;

namespace {
int64_t moved(const Result<uint64_t>& result) {
  return result ? static_cast<int64_t>(*result) : -int64_t{result.status().error()};
}
int64_t outcome(const Status& status) { return -int64_t{status.error()}; }
}  // namespace

template <class With>
int64_t FileAdapter::with(int fd, With with_file) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return kNotBuffered;
  InRuntime guard;
  const Descriptors::Ref file = descriptors->find(fd);
  return file ? with_file(file) : kNotBuffered;
}

bool FileAdapter::opened(int fd, int flags) {
  InRuntime guard;
  if ((flags & O_PATH) != 0) return false;
  const std::string path = path_of(fd);
  if (path.empty() || !matches_any(patterns_, path)) return false;
  if (descriptors_.load_acquire() == nullptr) descriptors_.store_release(make_());
  Descriptors* descriptors = descriptors_.load_acquire();
  return descriptors != nullptr && descriptors->attach(fd, flags, path).is_ok();
}

bool FileAdapter::is_buffered(int fd) {
  return with(fd, [](const Descriptors::Ref&) { return int64_t{0}; }) == 0;
}

int64_t FileAdapter::read(int fd, std::span<const iovec> to, int64_t offset) {
  return with(fd, [&](const Descriptors::Ref& file) {
    return moved(offset == kOwnPlace ? file->read(to) : file->read_at(static_cast<uint64_t>(offset), to));
  });
}

int64_t FileAdapter::write(int fd, std::span<const iovec> from, int64_t offset) {
  return with(fd, [&](const Descriptors::Ref& file) {
    return moved(offset == kOwnPlace ? file->write(from)
                                     : file->write_at(static_cast<uint64_t>(offset), from));
  });
}

int64_t FileAdapter::seek(int fd, int64_t offset, int whence) {
  return with(fd, [&](const Descriptors::Ref& file) { return moved(file->seek(offset, whence)); });
}

int64_t FileAdapter::resize(int fd, int64_t bytes) {
  return with(fd, [&](const Descriptors::Ref& file) {
    return bytes < 0 ? -int64_t{EINVAL} : outcome(file->resize(static_cast<uint64_t>(bytes)));
  });
}

int64_t FileAdapter::sync(int fd, bool whole) {
  return with(fd, [&](const Descriptors::Ref& file) { return outcome(file->sync(whole)); });
}

int64_t FileAdapter::flush(int fd) {
  return with(fd, [](const Descriptors::Ref& file) { return outcome(file->file().flush()); });
}

int64_t FileAdapter::size(int fd) {
  return with(fd, [](const Descriptors::Ref& file) { return static_cast<int64_t>(file->file().size()); });
}

int64_t FileAdapter::size_of(uint64_t device, uint64_t inode) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return kNotBuffered;
  InRuntime guard;
  const auto file = descriptors->files().find(device, inode);
  return file ? static_cast<int64_t>(file->size()) : kNotBuffered;
}

int64_t FileAdapter::resize_file(uint64_t device, uint64_t inode, int64_t bytes) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return kNotBuffered;
  InRuntime guard;
  const auto file = descriptors->files().find(device, inode);
  if (!file) return kNotBuffered;
  return bytes < 0 ? -int64_t{EINVAL} : outcome(file->resize(static_cast<uint64_t>(bytes)));
}

int64_t FileAdapter::close(int fd) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return kNotBuffered;
  InRuntime guard;
  bool was;
  const Status status = descriptors->detach(fd, &was);
  return was ? outcome(status) : kNotBuffered;
}

void FileAdapter::duplicated(int from, int to) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return;
  InRuntime guard;
  (void)descriptors->share(from, to);
}

void FileAdapter::settle() {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return;
  InRuntime guard;
  if (Status status = descriptors->settle(); !status)
    warn_("a buffered file was not written whole: " + status.message());
}

}  // namespace spw::runtime
