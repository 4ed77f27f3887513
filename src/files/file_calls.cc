#include "files/file_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/in_runtime.h"
#include "files/path_patterns.h"

namespace spw::files {

namespace {
// The file is to be given back, and the kernel to be asked.
constexpr int64_t kToGiveBack = kNotBuffered + 1;
int64_t outcome(const Status& status) {
  if (status.error() == BufferedFile::kNotOpened) return kToGiveBack;
  return status.error() == BufferedFile::kRetired ? kNotBuffered : -int64_t{status.error()};
}
int64_t moved(const Result<uint64_t>& result) {
  return result ? static_cast<int64_t>(*result) : outcome(result.status());
}
}  // namespace

template <class With>
int64_t FileCalls::with(int fd, With with_file) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return kNotBuffered;
  InRuntime guard;
  const Descriptors::Ref file = descriptors->find(fd);
  if (!file || file->is_on_trial()) return kNotBuffered;
  const int64_t result = with_file(file);
  return result == kToGiveBack ? given_back(*descriptors, file->file()) : result;
}

int64_t FileCalls::given_back(Descriptors& descriptors, BufferedFile& file) {
  const Status status = descriptors.give_back(file);
  return status ? kNotBuffered : -int64_t{status.error()};
}

// What the standard streams stand on is the kernel's: libc reads and writes them by
// system calls of its own. So is a file that somebody wants direct transfers of, which
// may be other calls than these. A file that is buffered under another name stays so.
bool FileCalls::opened(int fd, int flags, const char* opened_path) {
  InRuntime guard;
  Descriptors* descriptors = descriptors_.load_acquire();
  bool was;
  if (descriptors != nullptr) (void)descriptors->detach(fd, &was);  // closed by a call that we do not know
  if ((flags & O_PATH) != 0) return false;
  auto stamp = platform::file_stamp(fd);
  if (!stamp || !stamp->is_regular) return false;
  const bool is_known = descriptors != nullptr && descriptors->files().knows(*stamp);
  const bool is_believed = !is_known && descriptors != nullptr && opened_path != nullptr &&
                           descriptors->files().may_go_on_trial(*stamp) &&
                           matches_any(patterns_, opened_path);
  const std::string path = is_known || is_believed ? std::string() : path_of(fd);
  if (!is_known && !is_believed && (path.empty() || !matches_any(patterns_, path))) return false;
  if (fd <= STDERR_FILENO || (flags & O_DIRECT) != 0) {
    if (descriptors != nullptr) left_out(*descriptors, fd, flags, *stamp);
    return false;
  }
  if (descriptors == nullptr) descriptors_.store_release(descriptors = make_());
  return descriptors != nullptr &&
         descriptors->attach(fd, flags, path, *stamp, BufferedFiles::Guard::kGuarded).is_ok();
}

void FileCalls::opened_by_libc(int fd, int flags) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return;
  InRuntime guard;
  if (auto stamp = platform::file_stamp(fd); stamp && stamp->is_regular)
    left_out(*descriptors, fd, flags, *stamp);
}

// `fd` stays the kernel's, and so does its file from now on, or while it is open. What was written before the file was
// emptied is not to come back.
void FileCalls::left_out(Descriptors& descriptors, int fd, int flags, const platform::FileStamp& stamp) {
  const FileKey key{stamp.device, stamp.inode};
  const auto file = descriptors.files().find(key.device, key.inode);
  if (!file && !descriptors.files().trial_of(key)) return descriptors.files().refuse(key);
  if (file && (flags & O_TRUNC) != 0 && may_write(flags) && !file->has_fixed_size()) (void)file->make_empty();
  give_back(fd);
}

void FileCalls::give_back(int fd) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return;
  InRuntime guard;
  auto stamp = platform::file_stamp(fd);
  if (!stamp) return;
  auto file = descriptors->files().find(stamp->device, stamp->inode);
  if (!file) {
    if (descriptors->leave_to_kernel({stamp->device, stamp->inode})) return;
    file = descriptors->files().find(stamp->device, stamp->inode);  // its trial has ended meanwhile
  }
  if (!file) return;
  if (Status status = descriptors->give_back(*file); !status)
    warn_("a buffered file was not written whole: " + status.message());
}

void FileCalls::close_range(int first, int last) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return;
  InRuntime guard;
  descriptors->detach_range(first, last);
}

void FileCalls::flags_changed(int fd, int flags) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return;
  InRuntime guard;
  if (const Descriptors::Ref file = descriptors->find(fd)) file->change_flags(flags);
}

int64_t FileCalls::extend(int fd, int64_t bytes) {
  return with(fd, [&](const Descriptors::Ref& file) {
    return bytes < 0 ? -int64_t{EINVAL} : outcome(file->file().extend(static_cast<uint64_t>(bytes)));
  });
}

bool FileCalls::is_wanted(int fd) {
  InRuntime guard;
  const std::string path = path_of(fd);
  return (!path.empty() && matches_any(patterns_, path)) || is_buffered(fd);
}

bool FileCalls::is_buffered(int fd) {
  return with(fd, [](const Descriptors::Ref&) { return int64_t{0}; }) == 0;
}

bool FileCalls::has(int fd) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return false;
  InRuntime guard;
  return static_cast<bool>(descriptors->find(fd));
}

void FileCalls::end_trial(int fd) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return;
  InRuntime guard;
  descriptors->end_trial(fd);
}

FileCalls::KernelCall::KernelCall(FileCalls& calls, int fd, Counts counts) {
  Descriptors* descriptors = calls.descriptors_.load_acquire();
  if (descriptors == nullptr) return;
  InRuntime guard;
  call_.emplace(*descriptors, fd, counts);
}

FileCalls::KernelCall::KernelCall(FileCalls& calls, uint64_t device, uint64_t inode) {
  Descriptors* descriptors = calls.descriptors_.load_acquire();
  if (descriptors == nullptr) return;
  InRuntime guard;
  call_.emplace(*descriptors, FileKey{device, inode});
}

FileCalls::KernelCall::~KernelCall() {
  if (!call_) return;
  const int saved_errno = errno;
  InRuntime guard;
  call_.reset();
  errno = saved_errno;
}

int64_t FileCalls::read(int fd, std::span<const iovec> to, int64_t offset) {
  return with(fd, [&](const Descriptors::Ref& file) {
    return moved(offset == kOwnPlace ? file->read(to) : file->read_at(static_cast<uint64_t>(offset), to));
  });
}

int64_t FileCalls::write(int fd, std::span<const iovec> from, int64_t offset) {
  return with(fd, [&](const Descriptors::Ref& file) {
    return moved(offset == kOwnPlace ? file->write(from)
                                     : file->write_at(static_cast<uint64_t>(offset), from));
  });
}

int64_t FileCalls::seek(int fd, int64_t offset, int whence) {
  return with(fd, [&](const Descriptors::Ref& file) { return moved(file->seek(offset, whence)); });
}

int64_t FileCalls::resize(int fd, int64_t bytes) {
  return with(fd, [&](const Descriptors::Ref& file) {
    return bytes < 0 ? -int64_t{EINVAL} : outcome(file->resize(static_cast<uint64_t>(bytes)));
  });
}

int64_t FileCalls::sync(int fd, bool whole) {
  return with(fd, [&](const Descriptors::Ref& file) { return outcome(file->sync(whole)); });
}

int64_t FileCalls::flush(int fd) {
  return with(fd, [](const Descriptors::Ref& file) { return outcome(file->file().flush()); });
}

int64_t FileCalls::size(int fd) {
  return with(fd, [](const Descriptors::Ref& file) { return static_cast<int64_t>(file->file().size()); });
}

int64_t FileCalls::size_of(uint64_t device, uint64_t inode) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return kNotBuffered;
  InRuntime guard;
  const auto file = descriptors->files().find(device, inode);
  return file ? static_cast<int64_t>(file->size()) : kNotBuffered;
}

int64_t FileCalls::flush_file(uint64_t device, uint64_t inode) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return kNotBuffered;
  InRuntime guard;
  const auto file = descriptors->files().find(device, inode);
  return file ? outcome(file->flush()) : kNotBuffered;
}

int64_t FileCalls::resize_file(uint64_t device, uint64_t inode, int64_t bytes) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return kNotBuffered;
  InRuntime guard;
  const auto file = descriptors->files().find(device, inode);
  if (!file) return kNotBuffered;
  const int64_t result = bytes < 0 ? -int64_t{EINVAL} : outcome(file->resize(static_cast<uint64_t>(bytes)));
  return result == kToGiveBack ? given_back(*descriptors, *file) : result;
}

int64_t FileCalls::close(int fd) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return kNotBuffered;
  InRuntime guard;
  bool was;
  const Status status = descriptors->detach(fd, &was, Descriptors::Now::kOpen);
  return was ? outcome(status) : kNotBuffered;
}

void FileCalls::duplicated(int from, int to) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return;
  InRuntime guard;
  (void)descriptors->share(from, to);
}

void FileCalls::lock_taken(int fd) {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return;
  InRuntime guard;
  if (auto stamp = platform::file_stamp(fd)) descriptors->lock_taken({stamp->device, stamp->inode});
}

void FileCalls::lock_ends() {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return;
  InRuntime guard;
  if (Status status = descriptors->lock_ends(); !status)
    warn_("a buffered file was not written before its lock was given up: " + status.message());
}

void FileCalls::handed_out() {
  if (Descriptors* descriptors = descriptors_.load_acquire()) descriptors->handed_out();
}

void FileCalls::before_fork() {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return;
  InRuntime guard;
  descriptors->before_fork();
  (void)settle();
}

bool FileCalls::settle() {
  Descriptors* descriptors = descriptors_.load_acquire();
  if (descriptors == nullptr) return true;
  InRuntime guard;
  const Status status = descriptors->settle();
  if (!status) warn_("a buffered file was not written whole: " + status.message());
  return status.is_ok();
}

}  // namespace spw::files
