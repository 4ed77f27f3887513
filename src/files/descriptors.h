// Which descriptors of the process are of buffered files, and where each stands.
//
// An *open file* (POSIX: open file description) is what open() makes and
// dup() shares: a file, a place in it, and how it may be used. Invariants
//   table[d] = f  =>  f.refs >= 1, and counts each such d, and each Ref
//   refs = 0  =>  f is in no table entry, and belongs to whoever brought it to 0
// Order: find() reads an entry (acquire; pairs with the release that put it there), counts itself in unless refs is 0,
//   and looks whether the entry is still the same. Memory of an open file is used again for another one, never freed,
//   so that counting in is harmless when the entry is not. Who finds it changed gives the reference back.
// Threads: any. As with the kernel's, a descriptor that is closed while another thread uses it stays usable there.
// Limits: kDescriptorsMax; higher ones are not buffered.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string_view>
#include <utility>

#include "base/atomic.h"
#include "files/buffered_files.h"

namespace spw::files {

// By the flags of open(2).
inline bool may_write(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

class Descriptors;

class OpenFile {
 public:
  // At the file's own place, which it moves on. EBADF where it is open for the other way only.
  Result<uint64_t> read(std::span<const iovec> to);
  Result<uint64_t> write(std::span<const iovec> from);
  Result<uint64_t> read_at(uint64_t offset, std::span<const iovec> to);
  Result<uint64_t> write_at(uint64_t offset, std::span<const iovec> from);
  // lseek(2), but SEEK_DATA and SEEK_HOLE (EINVAL).
  Result<uint64_t> seek(int64_t offset, int whence);
  Status resize(uint64_t bytes);
  Status sync(bool whole) { return file_->sync(whole); }
  // Of a file that is open for reading and writing (EACCES): BufferedFiles::map().
  Result<uintptr_t> map(uint64_t offset, uint64_t bytes);
  // The place where the next read or write of its own will be.
  uint64_t place();
  BufferedFile& file() { return *file_; }  // not of one on trial
  // Whether the kernel has its file still; false stays false.
  bool is_on_trial() const { return is_on_trial_.load_acquire(); }
  int flags() const { return flags_.load_relaxed(); }
  // fcntl(F_SETFL).
  void change_flags(int flags);

 private:
  friend class Descriptors;
  Result<uint64_t> write_through(uint64_t offset, const Result<uint64_t>& written);
  Status check(bool is_write) const;

  Descriptors* owner_ = nullptr;
  Atomic<uint32_t> refs_{0};
  OpenFile* next_free_ = nullptr;
  std::shared_ptr<BufferedFile> file_;
  std::shared_ptr<Trial> trial_;     // which it was, or is
  Atomic<bool> is_on_trial_{false};  // made false while nobody makes a call on it (trial.h)
  Atomic<int> flags_{0};             // of open(2)
  std::mutex mutex_;                 // guards what follows, and orders those who use it
  uint64_t offset_ = 0;
  Status given_back_;  // BufferedFile::kRetired
};

class Descriptors {
 public:
  static constexpr int kDescriptorsMax = 1 << 20;

  // `warn`: is told of files that are given back because of others, and of what could not be written then.
  explicit Descriptors(const FileParts& parts, void (*warn)(std::string_view) = nullptr);

  // Keeps an open file while it is used; empty where the descriptor is not of a buffered file.
  class Ref {
   public:
    Ref() = default;
    Ref(Descriptors& owner, OpenFile* file) : owner_(&owner), file_(file) {}
    Ref(Ref&& other) noexcept : owner_(other.owner_), file_(std::exchange(other.file_, nullptr)) {}
    Ref& operator=(Ref&&) = delete;
    ~Ref() {
      if (file_ != nullptr) (void)owner_->leave(file_);
    }
    explicit operator bool() const { return file_ != nullptr; }
    OpenFile* operator->() const { return file_; }

   private:
    Descriptors* owner_ = nullptr;
    OpenFile* file_ = nullptr;
  };

  // `fd`, open with `flags`, is buffered from now on. `stamp`: of its file, of just now; `name`: its path, or empty.
  Status attach(int fd, int flags, const std::string& name, const platform::FileStamp& stamp,
                BufferedFiles::Guard guard);
  // The same for a striped file, of whose first member `fd` is.
  Status attach_striped(int fd, int flags, const StripedMembers& members);
  // A call on `fd` that is the kernel's: for as long as this lives, its file stays that if it is on trial. The call
  // counts for the trial where it is one of a kind that the cache could serve.
  class KernelCall {
   public:
    enum class Counts : bool { kNot, kAsOne };
    KernelCall(Descriptors& owner, int fd, Counts counts);
    // Of one by the file's name.
    KernelCall(Descriptors& owner, const FileKey& key);
    KernelCall() = default;
    KernelCall(KernelCall&&) = default;
    KernelCall& operator=(KernelCall&&) = delete;
    // The file is buffered after all; ask again.
    bool is_over() const { return is_over_; }
    void moved(uint64_t bytes) {
      if (trial_) trial_->moved(bytes);
    }

   private:
    std::shared_ptr<Trial> trial_;  // outlives the lock
    std::shared_lock<std::shared_mutex> lock_;
    bool is_over_ = false;
  };
  // What `fd` has open is buffered from now on, if it is on trial and may be.
  void end_trial(int fd);
  Ref find(int fd) {
    if (static_cast<unsigned>(fd) >= kDescriptorsMax || chunks_[chunk_of(fd)].load_acquire() == nullptr)
      return {};
    return find_in(*chunks_[chunk_of(fd)].load_acquire(), fd);
  }
  // `to` shares the open file of `from` (dup(2)); what `to` was before is detached. False: `from` is not buffered.
  bool share(int from, int to);
  // It is not buffered any more; *was: it had been. With the last one of a
  // file what is dirty is written, and an error says that it could not be.
  // kOpen: `fd` still has the file open; else it may be of another one by now.
  enum class Now : uint8_t { kOpen, kUnknown };
  Status detach(int fd, bool* was, Now now = Now::kUnknown);
  BufferedFiles& files() { return files_; }
  // The program has got a lock of a file, or is about to give one up (other_openers.h).
  void lock_taken(const FileKey& key) { files_.others().lock_taken(key); }
  Status lock_ends();
  // Other processes may be given descriptors of the program's.
  void handed_out() { files_.others().handed_out(); }
  uint64_t metadata_bytes() const { return files_.metadata_bytes(); }
  // [first, last], all of which are about to be closed.
  void detach_range(int first, int last);
  // It is on trial, and will be the kernel's from now on. False: it was not on trial.
  bool leave_to_kernel(const FileKey& key) { return files_.leave_to_kernel(key); }
  // The file is the kernel's from now on, which its descriptors stand in as they stood here; it is not buffered again.
  // Calls that other threads have begun go on there, too. An error, and nothing changed: it could not be written whole.
  Status give_back(BufferedFile& file);
  Status give_back_alone(BufferedFile& file);
  // Who moves the descriptor: who gives its file back; kPerhaps: another thread.
  enum class Moving : uint8_t { kPerhaps, kByThisThread };
  Status leave_table(int fd, bool* was, Now now, Moving moving);
  // What is buffered reaches the kernel, whose descriptors stand
  // where ours do: for a process that is about to have them, too.
  Status settle();
  // What is appended to is left to the kernel: a child would go on with it.
  void before_fork();
  // The process ends: what is buffered reaches the kernel, and whatever is written from now on does so at once.
  Status finish() {
    writes_through_.store_release(true);
    return files_.flush_all();
  }
  bool writes_through() const { return writes_through_.load_acquire(); }

 private:
  static constexpr int kChunkShift = 10;
  struct Chunk {
    Atomic<OpenFile*> entries[1 << kChunkShift];
  };
  static int chunk_of(int fd) { return fd >> kChunkShift; }
  template <class Visit>
  void for_each(Visit visit);
  static int entry_of(int fd) { return fd & ((1 << kChunkShift) - 1); }
  Ref find_in(Chunk& chunk, int fd);
  Chunk& chunk_for(int fd);
  OpenFile* take();
  Status leave(OpenFile* file, int fd = -1);
  Status seat(int fd, int flags, Result<std::shared_ptr<BufferedFile>> file);
  void seat_open_file(int fd, int flags, BufferedFiles::Opened opened);
  using OpenFiles = std::map<OpenFile*, std::pair<int, Ref>>;
  OpenFiles open_files_of(const Trial& trial);
  bool end_trial(Trial& trial, OpenFiles open, BufferedFiles::Guard guard);

  void give_back_to_others(const FileKey& key, const char* why);

  void (*const warn_)(std::string_view);
  Atomic<bool> writes_through_{false};
  Atomic<Chunk*> chunks_[kDescriptorsMax >> kChunkShift];
  std::mutex mutex_;  // guards what follows, and the making of chunks
  OpenFile* free_ = nullptr;
  BufferedFiles files_;  // the last: its threads use the others
};

}  // namespace spw::files
