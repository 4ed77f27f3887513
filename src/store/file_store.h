// A store in one file: somebody's whole file (or block device), or a spill file that only this process knows.
//
// A whole file keeps its size: its last block may stick out, reads zeros there and is written only up to the end. Its
// contents are other programs' too; transfers are direct where the filesystem allows it.
// A growing file has the size that its user gives it (growing_store.h); the functions for that are for such a file
// alone. A spill file has no name and mode 0600 from birth, is as long as kSpillBytesMax at once without taking space
// for it, and is gone with the process. Space is taken by reserve() and by writes, and given back by discards.
//
// Threads, lifetime: as every store. Limits: kSpillBytesMax, less where the filesystem's files are shorter (ext4: 16
// TiB less one block); the file's size when it was opened.
#pragma once

#include <mutex>
#include <new>
#include <optional>

#include "platform/file.h"
#include "store/claim/claim.h"
#include "store/engine/progress.h"
#include "store/engine/thread_engine.h"
#include "store/growing_store.h"
#include "store/space.h"

namespace spw::store {

inline constexpr uint64_t kSpillBytesMax = uint64_t{16} << 40;

struct FileOptions {
  IoEngineKind engine = IoEngineKind::kAuto;
  bool direct = true;           // O_DIRECT where the filesystem has it
  FaultPlan* faults = nullptr;  // outlives the store
  bool grows = false;
  bool has_fixed_size = false;     // though it grows: a device
  bool direct_works = false;       // has been found on this filesystem
  uint64_t device = 0, inode = 0;  // of a file that open_for() opens
};

class FileStore final : public GrowingStore {
 public:
  // An existing file, for reading and writing or, where that is refused, for reading: then writes fail with EBADF.
  static Result<std::unique_ptr<FileStore>> open(const std::string& path, const FileOptions& options = {});
  // The file that `fd` has open, with its access mode. `fd` stays the caller's. `name`: for messages.
  static Result<std::unique_ptr<FileStore>> open_descriptor(int fd, const std::string& name,
                                                            const FileOptions& options = {});
  // The same of a file that is the store's from now on. It is not open for direct transfers.
  static Result<std::unique_ptr<FileStore>> take_over(platform::File file, const std::string& name,
                                                      const FileOptions& options = {});
  // A growing file that is opened when open_for() asks for it: `options` and `alignment_bytes` are those of another
  // file of the same device.
  static std::unique_ptr<FileStore> unopened(const std::string& name, uint64_t size_bytes,
                                             uint64_t alignment_bytes, const FileOptions& options);
  // A block device to spill to: this process's alone, and ours to overwrite (claim/claim.h). `name`: for messages.
  // EBUSY, EINVAL with a sentence that says what it is used for, or holds.
  static Result<std::unique_ptr<FileStore>> open_device(const std::string& path, const std::string& name,
                                                        Overwrite overwrite, const FileOptions& options = {});
  static Result<std::unique_ptr<FileStore>> open_spill(const std::string& directory,
                                                       const FileOptions& options = {},
                                                       uint64_t size_bytes = kSpillBytesMax);

  std::string describe() const override;
  uint64_t size_bytes() const override { return target_.size(); }
  const Atomic<uint64_t>* written_end() const override {
    return growth_ == nullptr ? nullptr : &growth_->written_end;
  }
  void set_size(uint64_t bytes) override { growth_->set(bytes); }
  Status resize_file(uint64_t bytes) override;
  Status settle_size() override;
  bool has_fixed_size() const override { return has_fixed_size_; }
  Status open_for(Use use, int fd) override;
  bool opens_when_needed() const override { return inode_ != 0; }
  bool is_writable() const override { return !is_read_only_.load_acquire(); }
  void stop() override;
  void close_files() override;
  Status reopen(std::span<platform::File> files) override;
  Result<platform::FileStamp> stamp() const override { return platform::file_stamp(plain().fd()); }
  void write_to_kernel(bool begins) override {
    if (begins)
      growth_->to_kernel.fetch_add_acq_rel(1);
    else
      growth_->to_kernel.fetch_sub_acq_rel(1);
  }
  Status sync_file(bool whole) override;
  bool is_direct() const override { return direct_; }
  uint64_t alignment_bytes() const override { return target_.alignment_bytes; }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override;
  bool is_short_lived() const override { return target_.growth != nullptr; }
  Status transfer(Request& request) override;
  Status reserve(uint64_t offset_bytes, uint64_t bytes) override {
    return space_->reserve(offset_bytes, bytes);
  }
  void in_child() override {
    new (&opening_) std::mutex;
    space_->in_child();
    workers_.in_child();
  }

  int fd() const override { return plain().fd(); }
  const platform::File* file_to_map() const override {
    return growth_ == nullptr && !target_.spill ? &plain() : nullptr;
  }
  // Direct writes drop the kernel's pages behind them, and where one of those is dirty by then the kernel gives the
  // next sync an EIO.
  void share_page_cache() override {
    std::lock_guard lock(opening_);
    if (!shares_page_cache_.exchange_acquire(true) && file_.is_open()) platform::end_direct(file_.fd());
  }

 private:
  FileStore() = default;
  Status open_transfers(platform::Direct direct);
  Status open_own(int fd, bool direct, platform::File* own);
  // What sizes and syncs are asked of. It stays open until close_files(), whatever open_for() opens beside it.
  const platform::File& plain() const {
    std::lock_guard lock(opening_);
    return plain_now();
  }
  const platform::File& plain_now() const {
    return buffered_.is_open() ? buffered_ : file_;
  }  // under opening_
  Status set_up(platform::File opened, std::string name, bool spill, uint64_t size_bytes,
                const FileOptions& options);
  void be(std::string name, bool spill, uint64_t size_bytes, uint64_t alignment_bytes,
          const FileOptions& options);

  std::string name_;
  uint64_t device_ = 0, inode_ = 0;
  mutable std::mutex opening_;
  Atomic<bool> is_read_only_{false};
  platform::File file_;      // transfers
  platform::File buffered_;  // the unaligned end of a whole file; not open where file_ can do that
  bool direct_ = false;
  Atomic<bool> shares_page_cache_{false};
  IoEngineKind engine_ = IoEngineKind::kAuto;
  bool engine_chosen_here_ = false;  // it may be replaced by a lesser one when a queue cannot be made
  std::optional<SpaceReservations> space_;
  OwnGrowth growth_;
  bool is_too_long_ = false;  // it could not be made shorter
  bool has_fixed_size_ = false;
  Target target_;
  WorkerPool workers_;
};

}  // namespace spw::store
