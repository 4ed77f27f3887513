// The buffered files of the process, one object for all descriptors of a file.
//
// Invariants
//   a file that is open, or has blocks that could not be written, is in the table under its device and inode
//   while the program has a descriptor of a file that open() refused, no other one of it is buffered
//   a file on trial (trial.h) is in a table of its own instead, and is the kernel's
//   a striped file is there under those of its first member; none of
//       its members is in the table beside it (striped_files.cc)
// Threads: any. Limits: an open file takes up to two descriptors beside the program's: one that is small and was
// written one, one that is in memory none. kParkedFilesMax files that nobody has open stay in memory.
// Between processes: a guarded file that others have open is the kernel's (other_openers.h). Of others, what one writes
// others see after its flush (close, sync), and it sees what they wrote before it opened the file.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "files/buffered_file.h"
#include "files/other_openers.h"
#include "files/striped_members.h"
#include "files/trial.h"

namespace spw::files {

class BufferedFiles {
 public:
  BufferedFiles(const FileParts& parts, OtherOpeners::GiveBack give_back)
      : parts_(parts), others_(std::move(give_back)) {}
  ~BufferedFiles() {
    if (shared_) shared_->flusher.stop();  // it holds files for moments, and they use what is shared
  }

  // The file that `fd` has open, which had this stamp a moment ago. EINVAL: it is not a regular one. Each open() has
  // its close(). EBUSY: it was left to the kernel; or, guarded, others have it open. kOpen: it stays buffered whatever
  // others do, as spw_open(3) says.
  enum class Guard : uint8_t { kGuarded, kOpen };
  // One of the two: a guarded one that is small may be on trial instead.
  struct Opened {
    std::shared_ptr<BufferedFile> file;
    std::shared_ptr<Trial> trial;
  };
  // `name`: empty where it is not known, and that of a guarded file matches only by what open() was given.
  Result<Opened> open(int fd, const std::string& name, const platform::FileStamp& before, Guard guard);
  // The file on trial that `fd` has open, in `opens` open files, is buffered from now on. Nobody makes a call on it.
  // EAGAIN: it has more of them, or fewer. With any other error, it stays the kernel's while it is open.
  Result<std::shared_ptr<BufferedFile>> end_trial(Trial& trial, int fd, uint64_t opens, Guard guard);
  // An open file less that has it.
  void leave_trial(Trial& trial);
  std::shared_ptr<Trial> trial_of(const FileKey& key) const;
  // The striped file of these members, which are made empty first where `truncates` says so and it is not open. EBUSY
  // where one of them is open in another way: by itself, or with other members, another order or another chunk.
  Result<std::shared_ptr<BufferedFile>> open_striped(const StripedMembers& members, bool truncates);
  // With the last one, what is dirty is written; what is cached of it stays, for a while, for who opens it again
  // unchanged. Where the writing fails, the error is returned, and the file is kept: sync_all() tries again, and who
  // opens it meanwhile finds what was written to it.
  // `fd`: a descriptor that still has it open; -1: there may be none.
  Status close(const std::shared_ptr<BufferedFile>& file, int fd);
  // As those of a file that is open, which a mapping keeps so.
  Result<uintptr_t> map(const std::shared_ptr<BufferedFile>& file, uint64_t offset, uint64_t bytes);
  // ENOENT: no mapping of a file begins there. Else what close() says, and `save` before that.
  Status unmap(uintptr_t address, bool save);
  // The file with this number, if it is in the table; no striped one, of which the numbers are not.
  std::shared_ptr<BufferedFile> find(uint64_t device, uint64_t inode) const;
  bool knows(const platform::FileStamp& stamp) const;  // that the file is in the table, or on trial
  bool may_go_on_trial(const platform::FileStamp& stamp) const {
    return parts_.trial_calls > 0 && stamp.is_regular && stamp.size_bytes <= Trial::kBytesMax;
  }
  // The file is about to be left to the kernel: who opens it now waits until that is so, or is not to be after all.
  void begin_leaving(const BufferedFile& file);
  void end_leaving(const BufferedFile& file);
  // For who has just opened it, before a call is made on it: false: it has been left to the kernel meanwhile.
  bool stays(const BufferedFile& file);
  // The program has a descriptor of it that is the kernel's, which its next open() finds out.
  void refuse(const FileKey& key);
  // open() of it is EBUSY from now on.
  void leave_to_kernel(const BufferedFile& file);
  // The same of a file on trial; false: it is none.
  bool leave_to_kernel(const FileKey& key);
  OtherOpeners& others() { return others_; }
  // All are tried; the first error. flush_all(): they reach the kernel.
  Status sync_all() {
    return for_all([](BufferedFile& file) { return file.sync(false); });
  }
  Status flush_all() {
    return for_all([](BufferedFile& file) { return file.flush(); });
  }
  // Those that are open.
  std::vector<std::shared_ptr<BufferedFile>> list() const;
  size_t count() const;
  uint64_t metadata_bytes() const;

 private:
  // Made with the first file.
  struct Shared {
    Shared(platform::Mapping slots, const FileParts& parts, Flusher::List list)
        : uses(std::move(slots)),
          nodes(uses, parts.index_bytes_max),
          flusher(parts.flush, parts.cache.frame_count(), std::move(list)),
          room(parts.cache, parts.room) {}
    files::UseSlots uses;
    PageNodes nodes;
    Flusher flusher;
    Atomic<uint32_t> runs_beside_managed{0};
    cache::PageCleaner room;
  };
  using Key = FileKey;
  struct Entry {
    std::shared_ptr<BufferedFile> file;
    uint64_t opens = 0;
    uint64_t closers = 0;  // that are writing what is dirty
    bool is_parked = false;
    unsigned leavings = 0;      // begin_leaving() without end_leaving()
    platform::FileStamp stamp;  // when it was opened last, or parked
    uint64_t parked_at = 0;     // grows
    std::vector<Key> members;   // of a striped file, in order
    uint64_t chunk_bytes = 0;
  };
  static constexpr size_t kParkedFilesMax = 16384;
  using Dropped = std::vector<std::shared_ptr<BufferedFile>>;
  enum class Since : uint8_t { kNow, kEarlier };
  Result<std::shared_ptr<BufferedFile>> open_locked(int fd, const std::string& name,
                                                    const platform::FileStamp& before, Guard guard,
                                                    Since since, Dropped* dropped);
  std::shared_ptr<Trial> try_out(const platform::FileStamp& stamp, bool has_no_name);
  void unpark(Entry& entry);
  void await_leavings(std::unique_lock<std::mutex>& lock, const Key& key);
  void refuse_what_was_open(const Key& now);
  bool is_refused(const Key& key);
  bool is_claimed(int fd, const Key& key, Since since);
  bool is_unreachable(const BufferedFile& file, int fd);
  Result<std::unique_ptr<BufferedFile>> make(int fd, const std::string& name,
                                             const platform::FileStamp& stamp);
  Status make_shared_parts();

  using Files = std::map<Key, Entry>;
  Files::iterator striped_of(const Key& member);
  std::shared_ptr<BufferedFile> take_parked(Files::iterator entry);
  bool make_way(Files::iterator entry, Dropped* dropped);
  static Result<std::vector<platform::FileStamp>> stamps_of(const StripedMembers& members);
  Result<Files::iterator> find_striped(const StripedMembers& members, const std::vector<Key>& keys,
                                       Dropped* dropped);
  Result<std::unique_ptr<BufferedFile>> make_striped(const StripedMembers& members,
                                                     const std::vector<Key>& keys, bool truncates);

  std::map<Key, Entry>::iterator entry_of(const BufferedFile* file);
  Status for_all(Status (*what)(BufferedFile&));

  const FileParts parts_;
  OtherOpeners others_;
  mutable std::mutex mutex_;        // guards what follows
  std::condition_variable left_;    // leavings have ended
  std::unique_ptr<Shared> shared_;  // outlives the files
  std::map<Key, Entry> files_;
  std::map<Key, std::shared_ptr<Trial>> trials_;
  std::map<Key, Key> striped_;  // member: the first member of the same file; looked up by striped_of() alone
  std::map<uint64_t, uint64_t> direct_devices_;  // on which direct transfers work, and of which alignment
  std::set<Key> kernels_;                        // left to it
  // By the last open(), or open before any file was buffered: the program may have a descriptor of it that is the
  // kernel's. Looked up by is_refused().
  std::set<Key> refused_;
  bool has_looked_ = false;  // for what was open before
  // Of kernels_, what is kept open: closing any descriptor of a file gives up the locks that the process has on it.
  std::vector<std::shared_ptr<BufferedFile>> kept_open_;
  std::map<uint64_t, Key> parked_;  // by parked_at
  std::multimap<uintptr_t, std::shared_ptr<BufferedFile>> mapped_;
  uint64_t parkings_ = 0;
};

}  // namespace spw::files
