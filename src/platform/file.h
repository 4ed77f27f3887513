// An open file, and what stores ask of one: opening (spill files too), size, space, holes, vectored transfers.
//
// Invariant: a File owns its descriptor, or is empty (fd() == -1).
// Threads: const members may be called by any number of threads at once.
// Lifetime: the descriptor is closed with the File.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"
#include "platform/own_descriptors.h"

namespace spw::platform {

class File {
 public:
  File() = default;
  // Takes the descriptor over, which may change its number (own_descriptors.h).
  explicit File(int fd) : fd_(take_descriptor(fd)) {}
  // Of one that is closed on exec.
  static File closed_on_exec(int fd) {
    File file;
    file.fd_ = take_closed_on_exec(fd);
    return file;
  }
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File();

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// kIfAccepted: as kIfPossible for a filesystem on which that was found to work, so no read is tried.
enum class Direct : uint8_t { kNo, kIfPossible, kIfAccepted };

// A file and whether its transfers go around the page cache.
struct OpenedFile {
  File file;
  bool direct = false;
};

// open(2) with O_CLOEXEC; flags: O_RDONLY, O_RDWR, … A file that O_CREAT makes has mode 0600.
Result<File> open_file(const std::string& path, int flags);

// A second open description of what `fd` has open, with its access mode; direct where the filesystem accepts
// O_DIRECT and really reads with it (some accept the flag and then refuse every transfer). Falls back to
// dup(2) where there is no /proc.
Result<OpenedFile> reopen_file(int fd, Direct direct);

// A new empty file in `directory` that has no name and mode 0600: O_TMPFILE, or made and unlinked at once where the
// filesystem lacks that. Who is killed in between leaves an empty file, which the next one that comes this way removes:
// kSpillFilePrefix says whose they are, and what is still on its way to be unlinked may be unlinked by anybody.
// `tmpfile_refused`: take the second way at once (for tests).
inline constexpr const char* kSpillFilePrefix = ".spillway-spill-";
Result<File> open_spill_file(const std::string& directory, bool tmpfile_refused = false);

// Bytes of a regular file or a block device; EISDIR, ENOTSUP for anything else.
Result<uint64_t> file_size(const File& file);
Status set_file_size(const File& file, uint64_t bytes);
// Of a file without errors: what its contents take on the device, or in memory.
uint64_t allocated_bytes(const File& file);
// Bytes an unprivileged writer can still use on the file's filesystem.
Result<uint64_t> filesystem_free(const File& file);
// The multiple that offsets and lengths of direct transfers must have, as the kernel reports it; 512 where it does not.
uint64_t direct_alignment(const File& file);

// What says whether somebody has changed a file. Two of one file are equal when nobody has, within what the
// filesystem's clock tells apart.
struct FileStamp {
  uint64_t device = 0, inode = 0, size_bytes = 0, links = 0;
  bool is_regular = false, is_block_device = false;
  int64_t modified_ns = 0, changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};
Result<FileStamp> file_stamp(int fd);
// Whether `stamp`, of `fd` and of just now, shows that the filesystem gives the first change after a look at a file's
// times a time of its own (ext4, XFS, Btrfs and tmpfs, since Linux 6.13), so that two stamps that are equal have no
// change of the file between them. Elsewhere, times are those of the last tick of a clock, some milliseconds apart.
// False: it does not show it. It does where a file was changed moments ago, after somebody had looked at its times.
bool shows_times_of_their_own(int fd, const FileStamp& stamp);

// Locks the whole file against other open descriptions (flock(2)) until this one is closed, without waiting:
// EWOULDBLOCK when another has a lock that forbids it. Two kShared locks do not forbid each other.
enum class Lock : uint8_t { kShared, kExclusive };
Status lock_file(const File& file, Lock lock);

// Locks of single bytes, which need not be there, against other open descriptions (F_OFD_SETLK): they are given up when
// the last descriptor of this one is closed, however the process ends. False, and nothing changes: another one has a
// lock that forbids it. kNone gives up. `waits`: until it is to be had.
enum class ByteLock : uint8_t { kNone, kShared, kExclusive };
bool lock_byte(const File& file, uint64_t at, ByteLock lock, bool waits = false);
// By another open description.
bool is_byte_locked(const File& file, uint64_t at);

// An open description of its own, for reading and writing, of what `file` has open. Needs /proc.
Result<File> open_again(const File& file);

// The type of the filesystem that the file is on, as the kernel names it ("ext4", "fuse.sshfs"); "" if it does not say.
std::string filesystem_type(const File& file);

// Whether the file is in memory, which a crash of the machine takes with it (tmpfs).
Result<bool> is_in_memory(const File& file);

// Allocates space without changing the file's size. EOPNOTSUPP where the filesystem cannot.
Status allocate_space(const File& file, uint64_t offset_bytes, uint64_t bytes);

// The raw operations of a transfer, for the stores' own retry: a byte count, or a negative errno. EINTR comes back too.
int64_t read_at(int fd, const iovec* segments, unsigned count, uint64_t offset_bytes);
int64_t write_at(int fd, const iovec* segments, unsigned count, uint64_t offset_bytes);
int64_t punch_hole(int fd, uint64_t offset_bytes, uint64_t bytes);
int64_t sync_data(int fd);
int64_t sync_all(int fd);
// Transfers that begin from now on go through the page cache.
void end_direct(int fd);
// The kernel gives up what it has cached of the file, as far as it can
// at once; of what is dirty it begins the writes. A hint: no errors.
void forget_cached(int fd);

}  // namespace spw::platform
