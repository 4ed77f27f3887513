#include "region/region_map.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "abi/abi.h"
#include "base/check.h"
#include "telemetry/areas.h"

namespace spw::region {

struct RegionMap::FileRegion {
  uint32_t slot = 0;
  FileRegion* next_free = nullptr;
  std::shared_ptr<store::Store> keeps;  // touched under the mutex only
  // What lookups read; stored before the chunk table names the slot, and stable while a block is live.
  Atomic<store::Store*> store{nullptr};
  Atomic<const Atomic<uint64_t>*> written_end{nullptr};  // of the store
  Atomic<Kind> kind{Kind::kNone};
  Atomic<DirtyWatcher*> watcher{nullptr};
  Atomic<uint64_t> first_block{0};
  Atomic<uint64_t> offset_bytes{0};  // of first_block, in the file
  uint64_t live_blocks = 0;
};

Result<std::unique_ptr<RegionMap>> RegionMap::create(unsigned block_shift, uint64_t space_bytes,
                                                     store::Store& spill) {
  SPW_CHECK(block_shift >= kMinBlockShift && block_shift <= kMaxBlockShift);
  SPW_CHECK(space_bytes <= SPW_MANAGED_BYTES);
  std::unique_ptr<RegionMap> map(new RegionMap(block_shift, spill));
  if (Status s = map->allocate(space_bytes); !s) return s;
  return map;
}

Status RegionMap::allocate(uint64_t space_bytes) {
  blocks_ = round_up(space_bytes, kChunkBytes) >> block_shift_;
  if (Status s = live_.allocate(memory_, blocks_); !s) return s;
  if (Status s = spilled_.allocate(memory_, blocks_); !s) return s;
  if (Status s = chunk_file_.allocate(round_up(space_bytes, kChunkBytes) / kChunkBytes); !s) return s;
  if (Status s = chunk_fill_.allocate(chunk_file_.count()); !s) return s;
  return files_.allocate(kFileRegionsMax + 1);
}

RegionMap::~RegionMap() {
  for (uint32_t slot = 1; slot <= file_slots_; ++slot) files_[slot]->~FileRegion();
}

BlockId RegionMap::block_of(uintptr_t address) const {
  SPW_CHECK((address & (block_bytes() - 1)) == 0 && address >= SPW_MANAGED_BASE);
  return BlockId((address - SPW_MANAGED_BASE) >> block_shift_);
}

RegionMap::FileRegion* RegionMap::file_of(BlockId block) const {
  uint32_t slot = chunk_file_[chunk_of(block)].load_acquire();  // pairs with set_chunks
  return slot == 0 ? nullptr : files_[slot];
}

uint64_t RegionMap::file_offset(const FileRegion& file, BlockId block) const {
  return file.offset_bytes.load_relaxed() + ((block.value - file.first_block.load_relaxed()) << block_shift_);
}

uint64_t RegionMap::make_live(BlockId first, uint64_t count, bool has_contents) {
  if (ranges_ != nullptr) ranges_->grow(first, count, live_bytes() + (count << block_shift_), has_contents);
  spilled_.cancel_holes(first, count);
  uint64_t added = count - live_.count_set(first.value, count);
  live_.set_range(first.value, count);
  live_bytes_.fetch_add_relaxed(added << block_shift_);
  if (ranges_ != nullptr) ranges_->grown(first, count);
  return added;
}

void RegionMap::set_chunks(BlockId first, uint64_t count, uint32_t slot) {
  uint64_t end = chunk_of(BlockId(first.value + count - 1)) + 1;
  for (uint64_t chunk = chunk_of(first); chunk < end; ++chunk) chunk_file_[chunk].store_release(slot);
}

std::shared_ptr<store::Store> RegionMap::adopt(std::unique_ptr<store::Store> store) {
  return {store.release(), [this](store::Store* last) {
            if (ranges_ != nullptr) ranges_->forget(*last);
            delete last;
          }};
}

void RegionMap::add_anonymous(uintptr_t address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  make_live(block_of(address), blocks_of(bytes), false);
}

void RegionMap::make_file_blocks_live(FileRegion& file, BlockId first, uint64_t count) {
  uint64_t file_blocks_left = 0;
  uint64_t begin = file_offset(file, first), end = file.keeps->size_bytes();
  if (begin < end) file_blocks_left = round_up(end - begin, block_bytes()) >> block_shift_;
  count = std::min(count, file_blocks_left);
  if (count == 0) return;
  file.live_blocks += make_live(first, count, true);
}

Status RegionMap::add_file(uintptr_t address, uint64_t bytes, FileMapping mapping) {
  SPW_CHECK(address % kChunkBytes == 0 && bytes > 0 && mapping.kind >= Kind::kSharedFile);
  std::lock_guard lock(mutex_);
  FileRegion* file = free_files_;
  if (file != nullptr) {
    free_files_ = file->next_free;
  } else {
    if (file_slots_ == kFileRegionsMax) return Status::sentence(ENFILE, "too many mapped files");
    void* memory = memory_.take(sizeof(FileRegion));
    if (memory == nullptr) return Status(ENOMEM, "cannot allocate a file region");
    file = new (memory) FileRegion;
    file->slot = ++file_slots_;
    files_[file->slot] = file;
  }
  BlockId first = block_of(address);
  file->keeps = std::move(mapping.store);
  file->store.store_relaxed(file->keeps.get());
  file->written_end.store_relaxed(file->keeps->written_end());
  file->kind.store_relaxed(mapping.kind);
  file->watcher.store_relaxed(mapping.watcher);
  file->first_block.store_relaxed(first.value);
  file->offset_bytes.store_relaxed(mapping.offset_bytes);
  file->live_blocks = 0;
  set_chunks(first, blocks_of(bytes), file->slot);
  make_file_blocks_live(*file, first, blocks_of(bytes));
  if (file->live_blocks == 0) {  // wholly behind the file's end: nothing there can be touched
    set_chunks(first, blocks_of(bytes), 0);
    retire(*file);
    return Status::ok();
  }
  telemetry::note_area(address - SPW_MANAGED_BASE, bytes, file->keeps->describe());
  return Status::ok();
}

void RegionMap::extend(uintptr_t address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  BlockId first = block_of(address);
  FileRegion* file = first.value == 0 ? nullptr : file_of(BlockId(first.value - 1));
  if (file == nullptr) {
    make_live(first, blocks_of(bytes), false);
    return;
  }
  set_chunks(first, blocks_of(bytes), file->slot);
  make_file_blocks_live(*file, first, blocks_of(bytes));
}

std::shared_ptr<store::Store> RegionMap::retire(FileRegion& file) {
  file.kind.store_relaxed(Kind::kNone);
  file.next_free = free_files_;
  free_files_ = &file;
  return std::move(file.keeps);
}

void RegionMap::remove(uintptr_t address, uint64_t bytes) {
  telemetry::forget_areas(address - SPW_MANAGED_BASE, bytes);
  BlockId first = block_of(address);
  uint64_t count = blocks_of(bytes), was_live;
  {
    // First of all, the blocks have no home: the discard zeroes frames that a SATC still pins, and those zeros must not
    // be written to a file.
    std::lock_guard lock(mutex_);
    was_live = live_.count_set(first.value, count);
    live_.clear_range(first.value, count);
    live_bytes_.fetch_sub_relaxed(was_live << block_shift_);
  }
  if (ranges_ != nullptr) ranges_->discard(first, count);
  std::shared_ptr<store::Store> retired;  // outlives the lock: its end reaches the cache
  std::lock_guard lock(mutex_);
  spilled_.forget(first, count, live_);
  FileRegion* file = file_of(first);
  if (file == nullptr) return;
  // Chunks of which nothing is left may become another region's.
  uint64_t chunk_blocks = kChunkBytes >> block_shift_;
  for (uint64_t chunk = chunk_of(first); chunk <= chunk_of(BlockId(first.value + count - 1)); ++chunk)
    if (live_.count_set(chunk * chunk_blocks, chunk_blocks) == 0) chunk_file_[chunk].store_release(0);
  file->live_blocks -= was_live;
  if (file->live_blocks == 0 && file->kind.load_relaxed() != Kind::kNone) retired = retire(*file);
}

void RegionMap::discard(uintptr_t address, uint64_t bytes) {
  if (bytes == 0) return;
  BlockId first = block_of(address);
  SPW_CHECK(file_of(first) == nullptr);
  {
    // Before the frames go, so that another thread's read-ahead does not bring the old contents back; and again
    // after, because a writeback in flight may have noted them meanwhile.
    std::lock_guard lock(mutex_);
    spilled_.forget(first, blocks_of(bytes), live_);
  }
  if (ranges_ != nullptr) ranges_->discard(first, blocks_of(bytes));
  std::lock_guard lock(mutex_);
  spilled_.forget(first, blocks_of(bytes), live_);
  // The blocks live on and may be written back from now on, which a later discard would destroy.
  spilled_.flush_holes();
}

Status RegionMap::sync(uintptr_t address, uint64_t bytes) {
  if (ranges_ == nullptr || bytes == 0) return Status::ok();
  return ranges_->sync(block_of(address), blocks_of(bytes));
}

Status RegionMap::flush(uintptr_t address, uint64_t bytes) {
  if (ranges_ == nullptr || bytes == 0) return Status::ok();
  return ranges_->flush(block_of(address), blocks_of(bytes));
}

Status RegionMap::flush_shared_files() { return write_shared_files(&CacheRanges::flush); }
Status RegionMap::sync_shared_files() { return write_shared_files(&CacheRanges::sync); }

Status RegionMap::write_shared_files(WriteRange write) {
  struct Range {
    BlockId first;
    uint64_t count;
  };
  std::vector<Range> ranges;
  {
    std::lock_guard lock(mutex_);
    for (uint32_t slot = 1; slot <= file_slots_; ++slot) {
      const FileRegion& file = *files_[slot];
      if (file.kind.load_relaxed() != Kind::kSharedFile) continue;
      // Live blocks only: a region with holes ends later than its live blocks say, so runs are looked for per chunk.
      uint64_t chunk_blocks = kChunkBytes >> block_shift_;
      for (uint64_t chunk = chunk_of(BlockId(file.first_block.load_relaxed())), left = file.live_blocks;
           left > 0 && chunk < chunk_file_.count(); ++chunk) {
        if (chunk_file_[chunk].load_relaxed() != slot) continue;
        live_.for_each_run(chunk * chunk_blocks, chunk_blocks, [&](uint64_t first, uint64_t count) {
          left -= count;
          if (!ranges.empty() && ranges.back().first.value + ranges.back().count == first)
            ranges.back().count += count;
          else
            ranges.push_back({BlockId(first), count});
        });
      }
    }
  }
  Status first_failure;
  for (const Range& range : ranges) {
    if (ranges_ == nullptr) break;
    if (Status s = (ranges_->*write)(range.first, range.count); !s && first_failure) first_failure = s;
  }
  return first_failure;
}

void RegionMap::prefetch(uintptr_t address, uint64_t bytes) {
  if (ranges_ != nullptr && bytes > 0) ranges_->prefetch(block_of(address), blocks_of(bytes));
}

// Keeps the bits `keep` of every chunk's entry and sets `value` in the others.
void RegionMap::change_fill(uintptr_t address, uint64_t bytes, uint16_t keep, uint16_t value) {
  if (bytes == 0) return;
  std::lock_guard lock(mutex_);
  const uint64_t first = (address - SPW_MANAGED_BASE) / kChunkBytes;
  const uint64_t last = (address + bytes - 1 - SPW_MANAGED_BASE) / kChunkBytes;
  for (uint64_t chunk = first; chunk <= last; ++chunk) {
    Atomic<uint16_t>& entry = chunk_fill_[chunk];
    const auto changed = static_cast<uint16_t>((entry.load_relaxed() & keep) | value);
    if (entry.load_relaxed() != changed) entry.store_relaxed(changed);  // an entry left alone takes no memory
  }
}

namespace {
unsigned fill_shift(uint64_t fill_bytes) {
  SPW_CHECK(fill_bytes <= kFillBytesMax && (fill_bytes == 0 || is_power_of_two(fill_bytes)));
  return fill_bytes == 0 ? 0 : static_cast<unsigned>(std::countr_zero(fill_bytes));
}
}  // namespace

void RegionMap::set_fill_bytes(uintptr_t address, uint64_t bytes, uint64_t fill_bytes) {
  change_fill(address, bytes, 0, static_cast<uint16_t>(fill_shift(fill_bytes)));
}

void RegionMap::advise_fill_bytes(uintptr_t address, uint64_t bytes, uint64_t fill_bytes) {
  change_fill(address, bytes, 0xff, static_cast<uint16_t>(fill_shift(fill_bytes) << 8));
}

void RegionMap::advise_order(uintptr_t address, uint64_t bytes, Order order) {
  constexpr uint64_t kSequentialFillBytes = kMiB;
  advise_fill_bytes(address, bytes,
                    order == Order::kUnknown  ? 0
                    : order == Order::kRandom ? block_bytes()
                                              : kSequentialFillBytes);
}

cache::BlockRun RegionMap::fill_of(BlockId block) const {
  const unsigned entry = chunk_fill_[chunk_of(block)].load_relaxed();  // only a hint
  const unsigned shift = entry >> 8 != 0 ? entry >> 8 : entry;
  if (shift <= block_shift_) [[likely]]
    return {block, 1};
  const uint64_t count = uint64_t{1} << (shift - block_shift_);
  BlockId first(block.value & ~(count - 1));
  return {first, std::min(count, blocks_ - first.value)};
}

bool RegionMap::is_live(uintptr_t address, uint64_t bytes) const {
  const uint64_t space = blocks_ << block_shift_;
  if (address < SPW_MANAGED_BASE || address - SPW_MANAGED_BASE >= space) return false;
  if (bytes > space - (address - SPW_MANAGED_BASE)) return false;
  if (bytes == 0) return true;
  const uint64_t first = (address - SPW_MANAGED_BASE) >> block_shift_;
  const uint64_t count = ((address + bytes - 1 - SPW_MANAGED_BASE) >> block_shift_) - first + 1;
  return live_.count_set(first, count) == count;
}

Kind RegionMap::kind_at(uintptr_t address) const {
  return kind_of(BlockId((address - SPW_MANAGED_BASE) >> block_shift_));
}

Kind RegionMap::kind_of(BlockId block) const {
  if (block.value >= blocks_ || !live_.test(block.value)) return Kind::kNone;
  FileRegion* file = file_of(block);
  return file == nullptr ? Kind::kAnonymous : file->kind.load_relaxed();
}

RegionMap::FilePlace RegionMap::file_place(BlockId block) const {
  const FileRegion* file = file_of(block);
  if (file == nullptr) return {};
  return {file->store.load_relaxed(), file_offset(*file, block), file->kind.load_relaxed()};
}

FileMapping RegionMap::mapping_at(uintptr_t address) {
  std::lock_guard lock(mutex_);
  BlockId block = block_of(address);
  FileRegion* file = file_of(block);
  SPW_CHECK(file != nullptr);
  return {file->keeps, file_offset(*file, block), file->kind.load_relaxed()};
}

cache::Backing RegionMap::locate_for_fill(BlockId block) {
  // Read-ahead of what is mapped at the end of the space asks for blocks behind it.
  if (block.value >= blocks_ || !live_.test(block.value)) return {};
  FileRegion* file = file_of(block);
  const cache::Backing spilled = spilled_.find(block);
  if (file == nullptr || spilled.has_contents) return spilled;
  store::Store* store = file->store.load_relaxed();
  const uint64_t offset = file_offset(*file, block);
  const Atomic<uint64_t>* written_end = file->written_end.load_relaxed();
  return {store, offset, written_end == nullptr || offset < written_end->load_acquire()};
}

cache::Backing RegionMap::locate_for_writeback(BlockId block) {
  if (!live_.test(block.value)) return {};
  FileRegion* file = file_of(block);
  if (file != nullptr) {
    bool is_private = file->kind.load_relaxed() == Kind::kPrivateFile;
    if (!is_private) return {file->store.load_relaxed(), file_offset(*file, block), true};
  }
  return spilled_.place_for(block);
}

bool RegionMap::is_anonymous(BlockId block) { return kind_of(block) == Kind::kAnonymous; }

bool RegionMap::is_shared_file(BlockId block) { return kind_of(block) == Kind::kSharedFile; }

bool RegionMap::may_write_unstored(BlockId block) const {
  const Kind kind = kind_of(block);
  return kind == Kind::kAnonymous || kind == Kind::kPrivateFile;
}

bool RegionMap::is_buffered_file(BlockId block) {
  const FileRegion* file = file_of(block);
  return file != nullptr && file->kind.load_relaxed() == Kind::kBufferedFile;
}

void RegionMap::written_back(BlockId block, const store::Store* to) {
  FileRegion* file = file_of(block);
  if (file == nullptr || file->kind.load_relaxed() == Kind::kPrivateFile) spilled_.written_back(block, to);
}

// Blocks of a group may be of several chunks.
template <class Tell>
void RegionMap::for_each_watched(BlockId first, uint64_t count, Tell tell) const {
  const uint64_t chunk_blocks = kChunkBytes >> block_shift_;
  while (count > 0) {
    const uint64_t in_chunk = std::min(count, chunk_blocks - (first.value & (chunk_blocks - 1)));
    if (const FileRegion* file = file_of(first))
      if (DirtyWatcher* watcher = file->watcher.load_relaxed())
        tell(*watcher, file_offset(*file, first), first, in_chunk);
    first = first + in_chunk;
    count -= in_chunk;
  }
}

void RegionMap::dirtied(BlockId first, uint64_t count) {
  for_each_watched(first, count, [](DirtyWatcher& watcher, uint64_t offset_bytes, BlockId, uint64_t blocks) {
    watcher.dirtied(offset_bytes, blocks);
  });
}

void RegionMap::cleaned(BlockId first, std::span<const FrameId> frames) {
  for_each_watched(first, frames.size(),
                   [&](DirtyWatcher& watcher, uint64_t offset_bytes, BlockId block, uint64_t blocks) {
                     watcher.cleaned(offset_bytes, block, frames.subspan(block - first, blocks));
                   });
}

void RegionMap::flush_holes() {
  std::lock_guard lock(mutex_);
  spilled_.flush_holes();
}

void RegionMap::lock_for_fork() { mutex_.lock(); }

void RegionMap::lock_layers_for_fork(bool are_shared) {
  spilled_.lock_for_fork(are_shared);
  memory_.lock_for_fork();
}

void RegionMap::unlock_after_fork() {
  memory_.unlock_after_fork();
  spilled_.unlock_after_fork();
  mutex_.unlock();
}

void RegionMap::in_child() {
  memory_.unlock_after_fork();
  spilled_.in_child();
  mutex_.unlock();
}

bool RegionMap::look_at_layers() {
  std::vector<std::unique_ptr<store::Store>> closed;
  const bool is_to_move = spilled_.look(&closed);
  if (ranges_ != nullptr)
    for (const auto& store : closed) ranges_->forget(*store);
  return is_to_move;
}

void RegionMap::check_invariants() {
  std::lock_guard lock(mutex_);
  spilled_.check_invariants();
  uint64_t blocks = chunk_file_.count() * (kChunkBytes >> block_shift_);
  SPW_CHECK(live_.count_set(0, blocks) << block_shift_ == live_bytes_.load_relaxed());
  spilled_.for_each_run(
      0, blocks, [&](uint64_t first, uint64_t count) { SPW_CHECK(live_.count_set(first, count) == count); });
  for (uint32_t slot = 1; slot <= file_slots_; ++slot)
    SPW_CHECK((files_[slot]->keeps != nullptr) == (files_[slot]->live_blocks > 0));
}

}  // namespace spw::region
