#include "files/buffered_file.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "abi/managed.h"
#include "access/copy.h"
#include "base/check.h"
#include "platform/time.h"

namespace spw::files {

using cache::Access;
using cache::Pin;

using Use = store::GrowingStore::Use;

// One block, pinned while this lives.
class BufferedFile::Held {
 public:
  Held(BufferedFile& file, cache::Client& client, uint64_t offset, Access access)
      : cache_(file.parts_.cache), client_(client), status_(file.pin(client, offset, access, &pin_)) {}
  ~Held() {
    if (status_) cache_.unpin(client_, pin_.frame);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  const Status& status() const { return status_; }
  std::byte* data() const { return pin_.data; }

 private:
  cache::SharedCache& cache_;
  cache::Client& client_;
  Pin pin_;
  Status status_;
};

namespace {

// What was moved before an error came, or the error.
Result<uint64_t> moved_or(uint64_t moved, const Status& status) {
  return moved > 0 || status ? Result<uint64_t>(moved) : Result<uint64_t>(status);
}

}  // namespace

// ---- The caller's memory ----

Pieces::Pieces(std::span<const iovec> pieces) : left_(pieces) {
  for (const iovec& piece : pieces) {
    bytes_ += piece.iov_len;
    is_managed_ |= spw::is_managed(piece.iov_base);
  }
}

template <class Move>
void Pieces::for_each(uint64_t bytes, Move move) {
  while (bytes > 0) {
    const iovec& piece = left_.front();
    const uint64_t step = std::min<uint64_t>(bytes, piece.iov_len - within_);
    if (step > 0) move(static_cast<std::byte*>(piece.iov_base) + within_, step);
    bytes -= step;
    within_ += step;
    if (within_ == piece.iov_len) {
      left_ = left_.subspan(1);
      within_ = 0;
    }
  }
}

void Pieces::put(const std::byte* from, uint64_t bytes) {
  for_each(bytes, [&](std::byte* at, uint64_t step) {
    access::copy_bytes(at, from, step);
    from += step;
  });
}

void Pieces::get(std::byte* to, uint64_t bytes) {
  for_each(bytes, [&](std::byte* at, uint64_t step) {
    access::copy_bytes(to, at, step);
    to += step;
  });
}

inline Status BufferedFile::pin(cache::Client& client, uint64_t offset, Access access, Pin* pin) {
  return is_open_for(Use::kReads) ? parts_.cache.pin_quietly(client, block_at(offset), access, pin)
                                  : pin_unopened(client, offset, access, pin);
}

// The file is opened for reads when a block has to come.
Status BufferedFile::pin_unopened(cache::Client& client, uint64_t offset, Access access, Pin* pin) {
  const BlockId block = block_at(offset);
  const Atomic<uint64_t>* const end = file_->written_end();
  const bool comes = access != Access::kOverwrite && (end == nullptr || offset < end->load_acquire());
  if (!comes || parts_.cache.is_resident(block))
    if (parts_.cache.pin_quietly(client, block, access, pin)) return {};  // else it has left meanwhile
  if (Status status = need(Use::kReads); !status) return status;
  return parts_.cache.pin_quietly(client, block, access, pin);
}

BufferedFile::~BufferedFile() {
  if (reserved_bytes_ > 0) home_->unmap(address_, reserved_bytes_);
}

BlockId BufferedFile::block_at(uint64_t offset) const {
  return BlockId((address_ - SPW_MANAGED_BASE + offset) >> parts_.regions.block_shift());
}

region::FileMapping BufferedFile::mapping() { return {store_, 0, region::Kind::kBufferedFile, &dirty_}; }

// Addresses for the file as it is, with room up to `end` and more.
Status BufferedFile::reserve(uint64_t end, Reach reach) {
  const uint64_t generous = end < kFileBytesMax / kReserveFactor ? end * kReserveFactor : end;
  const uint64_t wanted = round_up(std::max(kReserveBytesMin, generous), region::kChunkBytes);
  const uint64_t least = round_up(std::max<uint64_t>(end, 1), region::kChunkBytes);
  Status status;
  for (heap::Mappings* home : {reach == Reach::kCalls ? parts_.call_mappings : nullptr, &parts_.mappings}) {
    for (const uint64_t bytes : {wanted, least}) {
      if (!home) continue;
      auto address = home->map_file(bytes, mapping());
      status = address.status();
      if (!address) continue;
      home_ = home;
      address_ = *address;
      reserved_bytes_ = bytes;
      live_bytes_ = round_up(size(), parts_.regions.block_bytes());
      return {};
    }
  }
  return status;
}

// ---- Reads ----

Result<uint64_t> BufferedFile::read(uint64_t offset, std::span<const iovec> to) {
  std::shared_lock lock(io_);
  if (!retired_) return retired_;
  const uint64_t size = size_.load_acquire();
  if (offset >= size) return uint64_t{0};
  Pieces out(to);
  const uint64_t bytes = std::min(out.bytes(), size - offset);
  const uint64_t block_bytes = parts_.regions.block_bytes();
  cache::Client& client = parts_.engine.client();
  uint64_t done = 0;
  while (done < bytes) {
    if (const uint64_t run = read_run(client, offset + done, out, bytes - done); run > 0) {
      done += run;
      continue;
    }
    const uint64_t piece = std::min(bytes - done, block_bytes - ((offset + done) & (block_bytes - 1)));
    if (Status status = read_block(client, offset + done, out, piece); !status) return moved_or(done, status);
    done += piece;
  }
  return done;
}

Status BufferedFile::read_block(cache::Client& client, uint64_t offset, Pieces& to, uint64_t bytes) {
  const BlockId block = block_at(offset);
  const Held held(*this, client, offset, Access::kRead);
  if (!held.status()) return held.status();
  const std::byte* from = held.data() + (offset & (parts_.regions.block_bytes() - 1));
  WriteStripe& stripe = stripe_of(block);
  const Pieces::Mark begin = to.mark();
  if (stripe.read([&] { to.put(from, bytes); })) return {};
  to.go_back(begin);
  const Writing writing(stripe);
  to.put(from, bytes);
  return {};
}

// ---- Writes ----

uint64_t BufferedFile::blocks_of(const Result<uint64_t>& written) const {
  return written ? round_up(*written, parts_.regions.block_bytes()) >> parts_.regions.block_shift() : 0;
}

Result<uint64_t> BufferedFile::write(uint64_t offset, std::span<const iovec> from) {
  auto written = write_to_cache(offset, from);
  flusher_.after_write(*this, blocks_of(written));
  return written;
}

Result<uint64_t> BufferedFile::append(std::span<const iovec> from, uint64_t* offset) {
  auto written = append_to_cache(from, offset);
  flusher_.after_write(*this, blocks_of(written));
  return written;
}

Result<uint64_t> BufferedFile::write_to_cache(uint64_t offset, std::span<const iovec> from) {
  Pieces in(from);
  if (in.bytes() == 0) return uint64_t{0};
  if (offset >= bytes_max_) return too_large();
  const uint64_t bytes = std::min(in.bytes(), bytes_max_ - offset);
  for (;;) {
    {
      std::shared_lock lock(io_);
      if (!retired_) return retired_;
      if (Status status = need_for_writes(in.bytes()); !status) return status;
      if (offset + bytes <= size_.load_acquire()) return write_at(offset, in, bytes);
      std::lock_guard growth(growth_);
      if (offset + bytes <= reserved_bytes_) return write_longer(offset, in, bytes);
    }
    if (Status status = make_room(offset + bytes); !status) return status;
  }
}

// What is much goes to the disk by itself, what is little by way of the kernel's memory (hand_over()).
Status BufferedFile::need_for_writes(uint64_t bytes) {
  const bool is_much = has_much_to_write() || bytes > kHandOverBytesMax;
  return need(is_much ? Use::kTransfers : Use::kWrites);
}

Result<uint64_t> BufferedFile::append_to_cache(std::span<const iovec> from, uint64_t* offset) {
  Pieces in(from);
  for (;;) {
    uint64_t end;
    {
      std::shared_lock lock(io_);
      if (!retired_) return retired_;
      if (Status status = need_for_writes(in.bytes()); !status) return status;
      std::lock_guard growth(growth_);
      *offset = size_.load_acquire();
      if (in.bytes() == 0) return uint64_t{0};
      if (*offset >= bytes_max_) return too_large();
      const uint64_t bytes = std::min(in.bytes(), bytes_max_ - *offset);
      end = *offset + bytes;
      if (end <= reserved_bytes_) return write_longer(*offset, in, bytes);
    }
    if (Status status = make_room(end); !status) return status;
  }
}

Result<uint64_t> BufferedFile::write_at(uint64_t offset, Pieces& from, uint64_t bytes) {
  const uint64_t block_bytes = parts_.regions.block_bytes();
  cache::Client& client = parts_.engine.client();
  uint64_t done = 0;
  while (done < bytes) {
    const uint64_t at = offset + done;
    if (const uint64_t run = write_run(client, at, from, bytes - done); run > 0) {
      done += run;
      continue;
    }
    const uint64_t piece = std::min(bytes - done, block_bytes - (at & (block_bytes - 1)));
    const uint64_t number = at >> parts_.regions.block_shift();
    if (done == 0 || number % DirtyBlocks::kNear == 0) dirty_.prefetch(number);
    if (Status status = write_block(client, at, from, piece); !status) return moved_or(done, status);
    done += piece;
  }
  return done;
}

// Under growth_. Nobody reads behind the old end before the new one is told.
Result<uint64_t> BufferedFile::write_longer(uint64_t offset, Pieces& from, uint64_t bytes) {
  const uint64_t old_size = size_.load_acquire(), end = offset + bytes;
  if (end > old_size) {
    if (Status status = zero_behind_end(old_size); !status) return status;
    if (Status status = grow(end); !status) return status;
  }
  auto written = write_at(offset, from, bytes);
  const uint64_t new_size = std::max(old_size, written && *written > 0 ? offset + *written : 0);
  if (new_size < end && end > old_size) {  // it may be in the file already
    shrink_region(new_size);
    (void)flush_live(new_size > 0 ? new_size - 1 : 0, 1, live_bytes_);
    (void)file_->resize_file(new_size);
    settled_size_ = UINT64_MAX;  // the next flush sees to it
  }
  size_.store_release(new_size);
  return written;
}

// Bytes of one block. One that is overwritten as far as the file reaches is not read first.
Status BufferedFile::write_block(cache::Client& client, uint64_t offset, Pieces& from, uint64_t bytes) {
  const uint64_t block_bytes = parts_.regions.block_bytes();
  const uint64_t within = offset & (block_bytes - 1);
  const BlockId block = block_at(offset);
  const Writing writing(stripe_of(block));
  // The store's size: a write that makes the file longer has set it before it wrote to this block.
  const bool is_whole = within == 0 && (bytes == block_bytes || offset + bytes >= file_->size_bytes());
  const Held held(*this, client, offset, is_whole ? Access::kOverwrite : Access::kWrite);
  if (!held.status()) return held.status();
  from.get(held.data() + within, bytes);
  if (is_whole && bytes < block_bytes) std::memset(held.data() + bytes, 0, block_bytes - bytes);
  // Not before: a block that was not cached holds another one's bytes until then, and what is noted may be flushed.
  dirty_.note(offset >> parts_.regions.block_shift());
  return {};
}

// ---- Sizes ----

// Under growth_. The range is live up to `end`; its new blocks are zeros.
Status BufferedFile::grow(uint64_t end) {
  const uint64_t wanted = round_up(end, parts_.regions.block_bytes());
  file_->set_size(std::max(end, file_->size_bytes()));
  if (wanted <= live_bytes_) return {};
  if (live_bytes_ == 0) {
    if (Status status = parts_.regions.add_file(address_, reserved_bytes_, mapping()); !status) {
      file_->set_size(size());
      return status;
    }
  } else {
    parts_.regions.extend(address_ + live_bytes_, wanted - live_bytes_);
  }
  live_bytes_ = wanted;
  return {};
}

// Blocks behind the new end are dropped without a write.
void BufferedFile::shrink_region(uint64_t bytes) {
  const uint64_t wanted = round_up(bytes, parts_.regions.block_bytes());
  if (wanted < live_bytes_) parts_.regions.remove(address_ + wanted, live_bytes_ - wanted);
  live_bytes_ = std::min(live_bytes_, wanted);
  dirty_.forget_from(wanted >> parts_.regions.block_shift());
  file_->set_size(bytes);
}

// Other addresses, of which there are enough for a file that ends at `end`. What is cached goes to the file first.
Status BufferedFile::make_room(uint64_t end) {
  std::lock_guard lock(io_);
  if (!retired_) return retired_;
  if (end <= reserved_bytes_) return {};
  if (!mapped_.empty())
    return Status::sentence(ENOSPC, "a mapped file has no addresses for more than " +
                                        format_size(reserved_bytes_) + "; unmap it first");
  return move_alone(end, Reach::kCalls);
}

// Under io_ alone.
Status BufferedFile::move_alone(uint64_t end, Reach reach) {
  if (Status status = flush_live(0, live_bytes_, live_bytes_); !status) return status;
  heap::Mappings* const old_home = home_;
  const uintptr_t old_address = address_;
  const uint64_t old_reserved = reserved_bytes_;
  if (Status status = reserve(end, reach); !status) return status;
  old_home->unmap(old_address, old_reserved);
  dirty_.forget_from(0);
  return {};
}

// What the last block holds behind the file's end is zeros again.
Status BufferedFile::zero_tail(uint64_t bytes) {
  const uint64_t within = bytes & (parts_.regions.block_bytes() - 1);
  if (within == 0) return {};
  const Held held(*this, parts_.engine.client(), bytes, Access::kWrite);
  if (!held.status()) return held.status();
  std::memset(held.data() + within, 0, parts_.regions.block_bytes() - within);
  dirty_.note(bytes >> parts_.regions.block_shift());
  return {};
}

Status BufferedFile::too_large() const {
  return bytes_max_ < kFileBytesMax
             ? Status::sentence(ENOSPC, "devices keep their size, and the file ends there")
             : Status::sentence(EFBIG, "a file has at most 8 TiB");
}

// The file is about to be longer. Who has it in memory may have stored there.
Status BufferedFile::zero_behind_end(uint64_t size) {
  return was_mapped_.load_acquire() ? zero_tail(size) : Status::ok();
}

Status BufferedFile::resize(uint64_t bytes) {
  if (bytes > bytes_max_) return too_large();
  if (Status status = make_room(bytes); !status) return status;
  std::lock_guard lock(io_);
  return resize_alone(bytes);
}

// A file that is empty stays untouched: ext4 takes a second truncation for the replacement of a file's contents, and
// writes what follows to the disk as soon as the file is closed.
Status BufferedFile::make_empty() {
  {
    std::lock_guard lock(io_);
    const bool knows_its_file = file_->opens_when_needed();  // a striped one is told to be empty before it is
    if (retired_ && knows_its_file && size() == 0 && settled_size_ == 0) return {};
  }
  return resize(0);
}

Status BufferedFile::extend(uint64_t bytes) {
  if (bytes > bytes_max_) return too_large();
  if (Status status = make_room(bytes); !status) return status;
  std::lock_guard lock(io_);
  return bytes > size() ? resize_alone(bytes) : Status::ok();
}

// Under io_ alone.
Status BufferedFile::resize_alone(uint64_t bytes) {
  if (!retired_) return retired_;
  if (Status status = need(Use::kWrites); !status) return status;
  const uint64_t old_size = size_.load_acquire();
  if (has_fixed_size() && bytes != old_size) return Status::sentence(EINVAL, "devices keep their size");
  for (const auto& [address, end] : mapped_)
    if (bytes < std::min(end, old_size))
      return Status::sentence(EBUSY, "the file is mapped behind its new end; unmap it first");
  Status flushed;
  if (bytes < old_size) {
    if (Status status = zero_tail(bytes); !status) return status;
    shrink_region(bytes);
    size_.store_release(bytes);
    // A write of the block that holds the new end may be under way that began when it was a whole one.
    if (bytes > 0) flushed = flush_live(bytes - 1, 1, live_bytes_);
  } else if (Status status = zero_behind_end(old_size); !status) {
    return status;
  }
  // Longer: what is between the two ends is a hole, to be read as such.
  if (Status status = file_->resize_file(bytes); !status || !flushed) return flushed ? status : flushed;
  if (bytes > old_size)
    if (Status status = grow(bytes); !status) return status;
  size_.store_release(bytes);
  settled_size_ = bytes;
  return {};
}

// ---- In memory ----

Result<uintptr_t> BufferedFile::map(uint64_t offset, uint64_t bytes) {
  std::lock_guard lock(io_);
  if (!retired_) return Status::sentence(EBUSY, "the file is left to the kernel");
  const uint64_t size = size_.load_acquire();
  if (bytes == 0 && offset < size) bytes = size - offset;
  if (offset % kMmuPageBytes != 0 || offset >= size || bytes > round_up(size, kMmuPageBytes) - offset)
    return Status::sentence(EINVAL, "a mapping begins on a page of the file, which ends at " +
                                        std::to_string(size) + ", and ends on its last one or before");
  if (Status status = need(Use::kTransfers); !status) return status;
  if (home_ != &parts_.mappings)
    if (Status status = move_alone(size, Reach::kAddresses); !status) return status;
  if (flushed_at_ns_.load_relaxed() == 0) flushed_at_ns_.store_relaxed(platform::monotonic_ns());
  was_mapped_.store_release(true);
  const uintptr_t address = address_ + offset;
  mapped_.emplace(address, offset + bytes);
  return address;
}

void BufferedFile::unmap(uintptr_t address) {
  std::lock_guard lock(io_);
  const auto [first, end] = mapped_.equal_range(address);  // those that end later may be the ones that stay
  mapped_.erase(std::min_element(
      first, end, [](const auto& one, const auto& other) { return one.second < other.second; }));
}

}  // namespace spw::files
