// A store in one file: somebody's whole file (or block device), or a spill file that only this process knows.
//
// A whole file keeps its size: its last block may stick out, reads zeros there and is written only up to the end. Its contents
// are other programs' too; transfers are direct where the filesystem allows it.
// A growing file has the size that its user gives it (set_size), which the file itself reaches by writes: what is read behind the
// file's own end, or written_end() says was never written, are zeros.
// A spill file has no name and mode 0600 from birth, is as long as kSpillBytesMax at once without taking space for it, and
// is gone with the process. Space is taken by reserve() and by writes, and given back by discards.
//
// Threads, lifetime: as every store. Limits: kSpillBytesMax, less where the filesystem's files are shorter (ext4: 16 TiB less one
// block); the file's size when it was opened.
#pragma once

#include <optional>

#include "platform/file.h"
#include "store/engine/progress.h"
#include "store/engine/thread_engine.h"
#include "store/space.h"
#include "store/store.h"

namespace spw::store {

inline constexpr uint64_t kSpillBytesMax = uint64_t{16} << 40;

struct FileOptions {
  EngineKind engine = EngineKind::kAuto;
  bool direct = true;           // O_DIRECT where the filesystem has it
  FaultPlan* faults = nullptr;  // outlives the store
  bool grows = false;
  bool direct_works = false;  // has been found on this filesystem
};

class FileStore final : public Store {
 public:
  // An existing file, for reading and writing or, where that is refused, for reading: then writes fail with EBADF.
  static Result<std::unique_ptr<FileStore>> open(const std::string& path, const FileOptions& options = {});
  // The file that `fd` has open, with its access mode. `fd` stays the caller's. `name`: for messages.
  static Result<std::unique_ptr<FileStore>> open_descriptor(int fd, const std::string& name,
                                                            const FileOptions& options = {});
  static Result<std::unique_ptr<FileStore>> open_spill(const std::string& directory,
                                                       const FileOptions& options = {},
                                                       uint64_t size_bytes = kSpillBytesMax);

  std::string describe() const override;
  uint64_t size_bytes() const override { return target_.size(); }
  const Atomic<uint64_t>* written_end() const override {
    return target_.growth == nullptr ? nullptr : &target_.growth->written_end;
  }
  ~FileStore() override;
  // Of a growing file; the file itself follows with writes. No request for what lies behind a lesser size is under way.
  void set_size(uint64_t bytes);
  // The same, and the file itself: what it gains is a hole.
  Status resize_file(uint64_t bytes);
  // The file itself is at least as long as set_size() said last; one that somebody else has made longer stays. No set_size() meanwhile.
  Status settle_size();
  // Without its files for a while, of which blocks stay cached: stop() has every new request fail; once none is under way, close_files() gives up
  // the descriptors. reopen(): the file that `fd` has open is this one, and nobody has changed it.
  void stop();
  void close_files();
  Status reopen(int fd);
  Result<platform::FileStamp> stamp() const { return platform::file_stamp(buffered_.fd()); }
  // Writes go to the kernel's memory instead of the disk, from one call until another ends it; calls nest.
  void write_to_kernel(bool begins) {
    if (begins)
      target_.growth->to_kernel.fetch_add_acq_rel(1);
    else
      target_.growth->to_kernel.fetch_sub_acq_rel(1);
  }
  // What has been written is durable; `whole`: all of the file's metadata, too.
  Status sync_file(bool whole);
  uint64_t alignment_bytes() const override { return target_.alignment_bytes; }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override;
  bool is_short_lived() const override { return target_.growth != nullptr; }
  Status transfer(Request& request) override;
  Status reserve(uint64_t offset_bytes, uint64_t bytes) override {
    return space_->reserve(offset_bytes, bytes);
  }

  bool is_direct() const { return direct_; }
  // For tests: the file.
  int fd() const { return file_.fd(); }

 private:
  FileStore() = default;
  Status open_transfers(platform::Direct direct);
  Status set_up(platform::File opened, std::string name, bool spill, uint64_t size_bytes,
                const FileOptions& options);

  std::string name_;
  platform::File file_;      // transfers
  platform::File buffered_;  // the unaligned end of a whole file; not open where file_ can do that
  bool direct_ = false;
  EngineKind engine_ = EngineKind::kAuto;
  bool engine_chosen_here_ = false;  // it may be replaced by a lesser one when a queue cannot be made
  std::optional<SpaceReservations> space_;
  Target target_;
  WorkerPool workers_;
};

}  // namespace spw::store
