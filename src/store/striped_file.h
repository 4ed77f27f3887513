// Several growing files as one: chunks of equal size lie on them in turn (striped/stripes.h), as in ScaleCache's arrays
// of disks, whose chunks have 512 KiB. A StripedStore over them moves the data; this keeps their sizes.
//
// Sizes: each byte of the striped file is on one member, so its size is the sum of theirs, and a size asks for one size
//   of every member: where [0, size) ends there. Every member has exactly this one after resize_file() and
//   settle_size(), holes included; nothing else is written down about the file. So when it is opened, each member has
//   to have the size that the sum asks for. Members of which that is not true are refused (EINVAL): they are not these
//   files, in this order, with this chunk, or whoever wrote them was killed before a settle_size(). The message names
//   one that ends too early, and the length that takes all in that the others have.
// Invariant: size_bytes() of member m >= stripes.offset_in_member(m, size_bytes()),
// and equal to it but while the size is set. Members that are block devices, all of
// them, have a fixed size: that of the smallest, in whole chunks, times their number.
// Errors: what several members have to do all of them try; the first error. resize_file()
//   that failed to make all members longer makes those shorter again that it could; one
//   that failed to make all of them shorter is done again by settle_size().
//
// Threads, lifetime: as GrowingStore; it has a thread for each member
// (striped/stripe_member.h) while it is not without its files.
// Limits: those of a StripedStore.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "store/growing_store.h"
#include "store/striped_store.h"

namespace spw::store {

inline constexpr uint64_t kStripedFileChunkBytesDefault = 512 * kKiB;

class StripedFile final : public GrowingStore {
 public:
  struct Member {
    std::unique_ptr<GrowingStore> store;  // a growing one
    std::string name;                     // for messages
  };
  // `is_empty`: it is about to be made so, by resize_file(0), whatever the members' sizes are.
  static Result<std::unique_ptr<StripedFile>> create(std::vector<Member> members,
                                                     uint64_t chunk_bytes = kStripedFileChunkBytesDefault,
                                                     bool is_empty = false);
  // One stamp for all members; the device and inode are the first one's.
  // ENOTSUP for devices, which do not say when they were changed.
  static Result<platform::FileStamp> stamp_of(std::span<const platform::FileStamp> members);

  std::string describe() const override { return striped_->describe(); }
  std::string describe_at(uint64_t offset_bytes) const override {
    return striped_->describe_at(offset_bytes);
  }
  uint64_t size_bytes() const override { return growth_->size_bytes.load_acquire(); }
  uint64_t alignment_bytes() const override { return striped_->alignment_bytes(); }
  const Atomic<uint64_t>* written_end() const override { return &growth_->written_end; }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override { return striped_->open_queue(depth); }
  Status transfer(Request& request) override { return striped_->transfer(request); }
  Status reserve(uint64_t offset_bytes, uint64_t bytes) override {
    return striped_->reserve(offset_bytes, bytes);
  }

  void set_size(uint64_t bytes) override;
  Status resize_file(uint64_t bytes) override;
  Status settle_size() override;
  bool has_fixed_size() const override { return has_fixed_size_; }
  bool is_writable() const override;
  void stop() override;
  void close_files() override;
  Status reopen(std::span<platform::File> files) override;
  Result<platform::FileStamp> stamp() const override;
  void write_to_kernel(bool begins) override;
  // Of all members at the same time.
  Status sync_file(bool whole) override;
  bool is_direct() const override;

 private:
  StripedFile() = default;
  // `members`: for their names.
  Result<uint64_t> size_of_files(const std::vector<Member>& members) const;
  Result<uint64_t> size_of_devices() const;
  Status resize_members(uint64_t bytes);
  uint64_t size_in(size_t member, uint64_t bytes) const {
    return striped_->stripes().offset_in_member(member, bytes);
  }

  OwnGrowth growth_;
  std::vector<GrowingStore*> files_;  // the members of striped_
  std::unique_ptr<StripedStore> striped_;
  bool has_fixed_size_ = false;
  bool is_uneven_ = false;  // a member is longer than the size asks for
};

}  // namespace spw::store
