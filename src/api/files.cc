// Buffered files.
#include <fcntl.h>
#include <limits.h>
#include <sys/uio.h>
#include <unistd.h>

#include <string>

#include "abi/managed.h"
#include "api/call.h"

namespace spw::api {

namespace {

using files::Descriptors;

int64_t moved(const Result<uint64_t>& result) {
  return result ? static_cast<int64_t>(*result) : result_of(result.status());
}

// Calls with(open file) where the descriptor is of a buffered file.
template <class With>
int64_t with_file(int fd, With with) {
  Call call;
  const Descriptors::Ref file = call->descriptors().find(fd);
  if (!file) return result_of(Status::sentence(EBADF, "the descriptor is not one of spw_open()"));
  return with(file);
}

// What reads and writes may move at once, as in Linux.
constexpr size_t kMovedMax = 0x7ffff000;
iovec piece(const void* buffer, size_t bytes) {
  return {const_cast<void*>(buffer), bytes < kMovedMax ? bytes : kMovedMax};
}

bool are_pieces(const iovec* pieces, int count) {
  if (pieces == nullptr || count < 0 || count > IOV_MAX) return false;
  size_t left = kMovedMax;
  for (int i = 0; i < count; ++i) {
    if (pieces[i].iov_len > left) return false;
    left -= pieces[i].iov_len;
  }
  return true;
}

int open_striped(const char* name, int flags, unsigned mode) {
  Call call;
  auto members = files::StripedMembers::open(name, flags, mode);
  if (!members) return result_of(members.status());
  const int fd = ::fcntl(members->files[0].fd(), (flags & O_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  if (fd < 0) return result_of(Status(errno, std::string("cannot open ") + name));
  if (Status status = call->descriptors().attach_striped(fd, flags, *members); !status) {
    ::close(fd);
    return result_of(status);
  }
  return fd;
}

int open_buffered(const char* path, int flags, unsigned mode) {
  if (path == nullptr || (flags & (O_PATH | O_DIRECTORY)) != 0)
    return bad_argument("spw_open() opens regular files");
  if (files::StripedMembers::is_name(path)) return open_striped(path, flags, mode);
  Call call;
  // Emptied once it is sure that it may be: attach() does it.
  const int fd = ::open(path, files::may_write(flags) ? flags & ~O_TRUNC : flags, mode);
  if (fd < 0) return result_of(Status(errno, std::string("cannot open ") + path));
  auto stamp = platform::file_stamp(fd);
  const Status status =
      stamp ? call->descriptors().attach(fd, flags, path, *stamp, files::BufferedFiles::Guard::kOpen)
            : stamp.status();
  if (!status) {
    ::close(fd);
    return result_of(status);
  }
  return fd;
}

int close_buffered(int fd) {
  Call call;
  bool was;
  Status status = call->descriptors().detach(fd, &was);
  if (!was) return result_of(Status::sentence(EBADF, "the descriptor is not one of spw_open()"));
  if (::close(fd) != 0 && status) status = Status(errno, "cannot close a descriptor");
  return result_of(status);
}

}  // namespace

}  // namespace spw::api

using namespace spw;
using namespace spw::api;

SPW_PUBLIC int spw_open(const char* path, int flags, unsigned mode) {
  return open_buffered(path, flags, mode);
}
SPW_PUBLIC int spw_close(int fd) { return close_buffered(fd); }

SPW_PUBLIC int64_t spw_read(int fd, void* buffer, size_t bytes) {
  const iovec to = piece(buffer, bytes);
  return with_file(fd, [&](const Descriptors::Ref& file) { return moved(file->read({&to, 1})); });
}
SPW_PUBLIC int64_t spw_write(int fd, const void* buffer, size_t bytes) {
  const iovec from = piece(buffer, bytes);
  return with_file(fd, [&](const Descriptors::Ref& file) { return moved(file->write({&from, 1})); });
}
SPW_PUBLIC int64_t spw_pread(int fd, void* buffer, size_t bytes, int64_t offset) {
  if (offset < 0) return bad_argument("an offset is not negative");
  const iovec to = piece(buffer, bytes);
  return with_file(fd, [&](const Descriptors::Ref& file) {
    return moved(file->read_at(static_cast<uint64_t>(offset), {&to, 1}));
  });
}
SPW_PUBLIC int64_t spw_pwrite(int fd, const void* buffer, size_t bytes, int64_t offset) {
  if (offset < 0) return bad_argument("an offset is not negative");
  const iovec from = piece(buffer, bytes);
  return with_file(fd, [&](const Descriptors::Ref& file) {
    return moved(file->write_at(static_cast<uint64_t>(offset), {&from, 1}));
  });
}
SPW_PUBLIC int64_t spw_readv(int fd, const iovec* pieces, int count) {
  if (!are_pieces(pieces, count)) return bad_argument("bad pieces of spw_readv");
  return with_file(fd, [&](const Descriptors::Ref& file) {
    return moved(file->read({pieces, static_cast<size_t>(count)}));
  });
}
SPW_PUBLIC int64_t spw_writev(int fd, const iovec* pieces, int count) {
  if (!are_pieces(pieces, count)) return bad_argument("bad pieces of spw_writev");
  return with_file(fd, [&](const Descriptors::Ref& file) {
    return moved(file->write({pieces, static_cast<size_t>(count)}));
  });
}
SPW_PUBLIC int64_t spw_lseek(int fd, int64_t offset, int whence) {
  return with_file(fd, [&](const Descriptors::Ref& file) { return moved(file->seek(offset, whence)); });
}
SPW_PUBLIC int spw_ftruncate(int fd, int64_t bytes) {
  if (bytes < 0) return bad_argument("a size is not negative");
  return static_cast<int>(with_file(fd, [&](const Descriptors::Ref& file) {
    return result_of(file->resize(static_cast<uint64_t>(bytes)));
  }));
}
SPW_PUBLIC int spw_fdatasync(int fd) {
  return static_cast<int>(
      with_file(fd, [](const Descriptors::Ref& file) { return result_of(file->sync(false)); }));
}
SPW_PUBLIC int spw_fsync(int fd) {
  return static_cast<int>(
      with_file(fd, [](const Descriptors::Ref& file) { return result_of(file->sync(true)); }));
}
SPW_PUBLIC int spw_map_fd(int fd, uint64_t offset, size_t length, void** address) {
  if (!address || length > SPW_MANAGED_BYTES) return bad_argument("bad arguments of spw_map_fd");
  return static_cast<int>(with_file(fd, [&](const Descriptors::Ref& file) {
    auto mapped = file->map(offset, length);
    if (mapped) *address = reinterpret_cast<void*>(*mapped);
    return static_cast<int64_t>(result_of(mapped.status()));
  }));
}
