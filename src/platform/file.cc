#include "platform/file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/units.h"
#include "platform/mounts.h"
#include "platform/raw_calls.h"
#include "platform/record_locks.h"
#include "platform/uncancelled.h"

namespace spw::platform {

namespace {

Status failed(std::string context) { return Status(errno, std::move(context)); }

// Whether a direct transfer works, tried by reading the first page.
bool can_read_directly(int fd) {
  alignas(kMmuPageBytes) std::byte page[kMmuPageBytes];
  return ::pread(fd, page, sizeof page, 0) >= 0;
}

}  // namespace

File::~File() {
  if (fd_ < 0) return;
  close_unlocked(fd_);
}

Result<File> open_file(const std::string& path, int flags) {
  constexpr mode_t kOwnerOnly = 0600;
  int fd = ::open(path.c_str(), flags | O_CLOEXEC, kOwnerOnly);
  if (fd < 0 && errno == ELOOP && (flags & O_NOFOLLOW) != 0)
    return Status::sentence(ELOOP,
                            path + " is a symbolic link, which is not followed; put the file itself there");
  if (fd < 0) return failed("cannot open " + path);
  return File::closed_on_exec(fd);
}

namespace {
struct flock byte_lock(uint64_t at, short type) {
  struct flock wish{};
  wish.l_type = type;
  wish.l_whence = SEEK_SET;
  wish.l_start = static_cast<off_t>(at);
  wish.l_len = 1;
  return wish;
}
}  // namespace

bool lock_byte(const File& file, uint64_t at, ByteLock lock, bool waits) {
  const int type = lock == ByteLock::kNone ? F_UNLCK : lock == ByteLock::kShared ? F_RDLCK : F_WRLCK;
  struct flock wish = byte_lock(at, static_cast<short>(type));
  return ::fcntl(file.fd(), waits ? F_OFD_SETLKW : F_OFD_SETLK, &wish) == 0;
}

bool is_byte_locked(const File& file, uint64_t at) {
  struct flock wish = byte_lock(at, F_WRLCK);
  return ::fcntl(file.fd(), F_OFD_GETLK, &wish) == 0 && wish.l_type != F_UNLCK;
}

Result<File> open_again(const File& file) {
  return open_file("/proc/thread-self/fd/" + std::to_string(file.fd()), O_RDWR);
}

Result<OpenedFile> reopen_file(int fd, Direct direct) {
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return failed("cannot use file descriptor " + std::to_string(fd));
  int access = flags & O_ACCMODE;
  std::string path = "/proc/thread-self/fd/" + std::to_string(fd);
  if (direct != Direct::kNo && access != O_WRONLY) {
    File file(::open(path.c_str(), access | O_DIRECT | O_CLOEXEC));
    if (file.is_open() && (direct == Direct::kIfAccepted || can_read_directly(file.fd())))
      return OpenedFile{std::move(file), true};
  }
  File file(::open(path.c_str(), access | O_CLOEXEC));
  if (file.is_open()) return OpenedFile{std::move(file), false};
  int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return failed("cannot duplicate file descriptor " + std::to_string(fd));
  return OpenedFile{File(copy), (flags & O_DIRECT) != 0};
}

namespace {
// Only what is as its maker left it: ours, empty, of no other name. Nothing is lost where the maker is still at it.
void remove_left_behind(const std::string& directory) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(kSpillFilePrefix)) continue;
    struct stat info{};
    if (::lstat(entry->path().c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid() &&
        info.st_size == 0 && info.st_blocks == 0 && info.st_nlink == 1)
      (void)::unlink(entry->path().c_str());
  }
}
}  // namespace

Result<File> open_spill_file(const std::string& directory, bool tmpfile_refused) {
  constexpr mode_t kOwnerOnly = 0600;
  if (!tmpfile_refused) {
    int fd = ::open(directory.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, kOwnerOnly);
    if (fd >= 0) return File(fd);
    bool lacks_it = errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL || errno == ENOSYS;
    if (!lacks_it) return failed("cannot make a spill file in " + directory);
  }
  remove_left_behind(directory);
  std::string path = directory + "/" + kSpillFilePrefix + "XXXXXX";
  int fd = ::mkostemp(path.data(), O_CLOEXEC);  // mode 0600
  if (fd < 0) return failed("cannot make a spill file in " + directory);
  File file(fd);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed("cannot unlink the spill file " + path);
  return file;
}

uint64_t allocated_bytes(const File& file) {
  constexpr uint64_t kUnitBytes = 512;
  struct stat info{};
  return ::fstat(file.fd(), &info) == 0 ? static_cast<uint64_t>(info.st_blocks) * kUnitBytes : 0;
}

Result<uint64_t> file_size(const File& file) {
  struct stat info{};
  if (::fstat(file.fd(), &info) != 0) return failed("cannot stat a file");
  if (S_ISREG(info.st_mode)) return static_cast<uint64_t>(info.st_size);
  if (S_ISDIR(info.st_mode))
    return Status::sentence(EISDIR, "a store needs a file or a block device, not a directory");
  if (!S_ISBLK(info.st_mode)) return Status::sentence(ENOTSUP, "a store needs a file or a block device");
  uint64_t bytes = 0;
  if (::ioctl(file.fd(), BLKGETSIZE64, &bytes) != 0) return failed("cannot tell a block device's size");
  return bytes;
}

Status set_file_size(const File& file, uint64_t bytes) {
  if (::ftruncate(file.fd(), static_cast<off_t>(bytes)) != 0)
    return failed("cannot set a file's size to " + format_size(bytes));
  return Status::ok();
}

Result<uint64_t> filesystem_free(const File& file) {
  struct statvfs info{};
  if (::fstatvfs(file.fd(), &info) != 0) return failed("cannot tell a filesystem's free space");
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

uint64_t direct_alignment(const File& file) {
  constexpr uint64_t kSectorBytes = 512;
#ifdef STATX_DIOALIGN
  struct statx info{};
  if (::statx(file.fd(), "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 && (info.stx_mask & STATX_DIOALIGN) &&
      info.stx_dio_offset_align > kSectorBytes)
    return info.stx_dio_offset_align;
#endif
  return kSectorBytes;
}

Status lock_file(const File& file, Lock lock) {
  int result;
  do {
    result = ::flock(file.fd(), (lock == Lock::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  return result == 0 ? Status::ok() : failed("cannot lock a file");
}

Result<bool> is_in_memory(const File& file) {
  struct statfs filesystem;
  if (::fstatfs(file.fd(), &filesystem) != 0) return failed("cannot ask for the file's filesystem");
  return filesystem.f_type == TMPFS_MAGIC || filesystem.f_type == RAMFS_MAGIC;
}

std::string filesystem_type(const File& file) {
  // Most files are on one of these, and a machine may have thousands of mounts.
  struct statfs filesystem{};
  if (::fstatfs(file.fd(), &filesystem) == 0) {
    if (filesystem.f_type == EXT4_SUPER_MAGIC) return "ext4";
    if (filesystem.f_type == XFS_SUPER_MAGIC) return "xfs";
    if (filesystem.f_type == BTRFS_SUPER_MAGIC) return "btrfs";
  }
#ifdef STATX_MNT_ID
  struct statx info{};
  if (::statx(file.fd(), "", AT_EMPTY_PATH, STATX_MNT_ID, &info) == 0 && (info.stx_mask & STATX_MNT_ID)) {
    const std::string id = std::to_string(info.stx_mnt_id);
    if (const auto mount = find_mount([&id](const Mount& each) { return each.id == id; })) return mount->type;
  }
#endif
  return is_in_memory(file) && *is_in_memory(file) ? "tmpfs" : "";
}

Status allocate_space(const File& file, uint64_t offset_bytes, uint64_t bytes) {
  Uncancelled guard;
  int result;
  do {
    result = ::fallocate(file.fd(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_bytes),
                         static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0)
    return failed("cannot reserve " + format_size(bytes) + " at offset " + std::to_string(offset_bytes));
  return Status::ok();
}

int64_t read_at(int fd, const iovec* segments, unsigned count, uint64_t offset_bytes) {
  const auto offset = static_cast<off_t>(offset_bytes);
  const ssize_t result = count == 1 ? raw::pread(fd, segments->iov_base, segments->iov_len, offset)
                                    : raw::preadv(fd, segments, static_cast<int>(count), offset);
  return result < 0 ? -errno : result;
}

int64_t write_at(int fd, const iovec* segments, unsigned count, uint64_t offset_bytes) {
  const auto offset = static_cast<off_t>(offset_bytes);
  const ssize_t result = count == 1 ? raw::pwrite(fd, segments->iov_base, segments->iov_len, offset)
                                    : raw::pwritev(fd, segments, static_cast<int>(count), offset);
  return result < 0 ? -errno : result;
}

int64_t punch_hole(int fd, uint64_t offset_bytes, uint64_t bytes) {
  Uncancelled guard;
  int result = ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_bytes),
                           static_cast<off_t>(bytes));
  return result < 0 ? -errno : 0;
}

Result<FileStamp> file_stamp(int fd) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return failed("cannot use file descriptor " + std::to_string(fd));
  const auto ns = [](const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  return FileStamp{info.st_dev,      info.st_ino,           static_cast<uint64_t>(info.st_size),
                   info.st_nlink,    S_ISREG(info.st_mode), S_ISBLK(info.st_mode),
                   ns(info.st_mtim), ns(info.st_ctim)};
}

// A time that is later than that of the last tick did not come from there.
bool shows_times_of_their_own(int fd, const FileStamp& stamp) {
  const auto ns = [](const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; };
  timespec tick, period;
  if (::clock_gettime(CLOCK_REALTIME_COARSE, &tick) != 0 ||
      ::clock_getres(CLOCK_REALTIME_COARSE, &period) != 0)
    return false;
  const int64_t ahead_ns = stamp.changed_ns - ns(tick);
  if (ahead_ns <= 0 || ahead_ns >= ns(period)) return false;  // or the clock was set back
  struct statfs filesystem{};
  if (::fstatfs(fd, &filesystem) != 0) return false;
  // Those whose times come from this machine's clock.
  constexpr decltype(filesystem.f_type) kLocal[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                                    TMPFS_MAGIC};
  return std::ranges::find(kLocal, filesystem.f_type) != std::end(kLocal);
}

namespace {
// A signal of the program's is no reason to tell it that its data is lost; timers may send them without end.
constexpr int kInterruptionsMax = 100;
template <class Call>
int64_t uninterrupted(Call call) {
  Uncancelled guard;
  for (int interruptions = 0;; ++interruptions) {
    if (call() == 0) return 0;
    if (errno != EINTR || interruptions == kInterruptionsMax) return -errno;
  }
}
}  // namespace

int64_t sync_data(int fd) {
  return uninterrupted([&] { return ::fdatasync(fd); });
}

int64_t sync_all(int fd) {
  return uninterrupted([&] { return ::fsync(fd); });
}

void end_direct(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_DIRECT) != 0) (void)::fcntl(fd, F_SETFL, flags & ~O_DIRECT);
}

void forget_cached(int fd) { (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); }

}  // namespace spw::platform
