#include "durable/block_writes.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "base/atomic.h"
#include "base/units.h"
#include "platform/memory.h"

namespace spw::durable {

namespace {

constexpr uint64_t kBlockBytes = uint64_t{1} << kBlockShift;

// Word by word, while other threads store to the block: a copy may hold any part of what they store, all of which is in
// their logs. Where that is looked for as a race, the loop is not looked at.
__attribute__((no_sanitize("thread"))) void copy_block(std::byte* to, const std::byte* from) {
  for (size_t at = 0; at < kBlockBytes; at += sizeof(uint64_t)) {
    const uint64_t word = *reinterpret_cast<const volatile uint64_t*>(from + at);
    __builtin_memcpy(to + at, &word, sizeof word);
  }
}

class BlockWrites;

class BlockWriter final : public Persistence::Writer {
 public:
  BlockWriter(BlockWrites& domain, bool is_for_logs) : domain_(domain), is_for_logs_(is_for_logs) {}
  void write_back(const void* first, size_t bytes) override;
  Status fence() override;

 private:
  Status write_batch(size_t begin, size_t end);
  Status write_run(uint64_t block, size_t at, size_t count) const;

  BlockWrites& domain_;
  const bool is_for_logs_;
  std::vector<uint64_t> blocks_;
  platform::Mapping copies_;
};

class BlockWrites final : public Persistence {
 public:
  BlockWrites(const platform::File& file, const std::byte* base) : file_(file), base_(base) {
    // Not every filesystem has direct transfers; those that lack them
    // go through the page cache and are synced all the same.
    if (auto direct = platform::reopen_file(file.fd(), platform::Direct::kIfPossible))
      direct_ = std::move(*direct);
  }
  unsigned grain_shift() const override { return kBlockShift; }
  bool stores_leak() const override { return false; }
  std::unique_ptr<Writer> open_writer() override { return std::make_unique<BlockWriter>(*this, false); }
  std::unique_ptr<Writer> open_log_writer() override { return std::make_unique<BlockWriter>(*this, true); }
  void set_logs(Logs* logs) override { logs_ = logs; }

  Logs* logs() const { return logs_; }
  const std::byte* base() const { return base_; }
  std::mutex& data_mutex() { return data_mutex_; }
  // Once a write or a sync has failed, nobody can say what is durable: every later one fails, too.
  Status failure() const {
    const int error = error_.load_acquire();
    return error == 0 ? Status() : Status(error, "an earlier write to the persistent region failed");
  }
  Status failed(Status status) {
    int none = 0;
    (void)error_.cas_strong_acq_rel(none, status.error());
    return status;
  }
  Status sync();
  int write_fd() const { return direct_.file.is_open() ? direct_.file.fd() : file_.fd(); }

 private:
  const platform::File& file_;
  const std::byte* const base_;
  platform::OpenedFile direct_;
  Logs* logs_ = nullptr;
  // Held from a block's copy to its write: an older copy must not be
  // written after a newer one. A slot's log has a mutex of its own.
  std::mutex data_mutex_;
  // The kernel tells only one of those who sync by way of the page cache that a write of anybody's has failed.
  std::mutex sync_mutex_;
  Atomic<int> error_{0};
};

Status BlockWrites::sync() {
  std::unique_lock<std::mutex> lock;
  if (!direct_.direct) lock = std::unique_lock(sync_mutex_);
  if (Status status = failure(); !status) return status;
  const int64_t error = platform::sync_data(write_fd());
  if (error == 0) return failure();
  return failed(Status(static_cast<int>(-error), "cannot make a persistent region's blocks durable"));
}

void BlockWriter::write_back(const void* first, size_t bytes) {
  const uint64_t offset = static_cast<uint64_t>(static_cast<const std::byte*>(first) - domain_.base());
  const uint64_t end = (offset + bytes + kBlockBytes - 1) >> kBlockShift;
  for (uint64_t block = offset >> kBlockShift; block < end; ++block)
    if (blocks_.empty() || blocks_.back() != block) blocks_.push_back(block);
}

Status BlockWriter::fence() {
  if (blocks_.empty()) return {};
  std::sort(blocks_.begin(), blocks_.end());
  blocks_.erase(std::unique(blocks_.begin(), blocks_.end()), blocks_.end());
  if (copies_.bytes() == 0) {
    auto copies = platform::map_anonymous(kCopiedBlocksMax * kBlockBytes);
    if (!copies) return copies.status();
    copies_ = std::move(*copies);
  }
  Status status = domain_.failure();
  for (size_t begin = 0; begin < blocks_.size() && status; begin += kCopiedBlocksMax)
    status = write_batch(begin, std::min<size_t>(begin + kCopiedBlocksMax, blocks_.size()));
  blocks_.clear();
  return status ? domain_.sync() : domain_.failed(std::move(status));
}

Status BlockWriter::write_batch(size_t begin, size_t end) {
  // So that little is left to be persisted while others wait.
  if (!is_for_logs_ && domain_.logs() != nullptr)
    if (Status status = domain_.logs()->persist(); !status) return status;
  std::unique_lock<std::mutex> lock;
  if (!is_for_logs_) lock = std::unique_lock(domain_.data_mutex());
  for (size_t i = begin; i < end; ++i)
    copy_block(copies_.data() + (i - begin) * kBlockBytes, domain_.base() + (blocks_[i] << kBlockShift));
  // What was copied was stored after its record was appended: the logs are looked at after the copies were made.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!is_for_logs_ && domain_.logs() != nullptr)
    if (Status status = domain_.logs()->persist(); !status) return status;
  for (size_t first = begin; first < end;) {
    size_t last = first + 1;
    while (last < end && blocks_[last] == blocks_[last - 1] + 1) ++last;
    if (Status status = write_run(blocks_[first], first - begin, last - first); !status) return status;
    first = last;
  }
  return {};
}

Status BlockWriter::write_run(uint64_t block, size_t at, size_t count) const {
  for (uint64_t done = 0; done < count * kBlockBytes;) {
    const iovec segment{copies_.data() + at * kBlockBytes + done, count * kBlockBytes - done};
    const int64_t written =
        platform::write_at(domain_.write_fd(), &segment, 1, (block << kBlockShift) + done);
    if (written == -EINTR) continue;
    if (written <= 0)
      return Status(
          written == 0 ? EIO : static_cast<int>(-written),
          "cannot write to a persistent region at offset " + std::to_string((block << kBlockShift) + done));
    done += static_cast<uint64_t>(written);
  }
  return {};
}

}  // namespace

std::unique_ptr<Persistence> make_block_writes(const platform::File& file, const std::byte* base) {
  return std::make_unique<BlockWrites>(file, base);
}

}  // namespace spw::durable
