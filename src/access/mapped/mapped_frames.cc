#include "access/mapped/mapped_frames.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/units.h"

namespace spw::access {

using cache::Contents;
using cache::Resident;

namespace {

// Blocks released in one call: a few microseconds, and less than half a microsecond each.
constexpr uint64_t kReleaseBatchBytes = 512 * kKiB;
constexpr uint64_t kReleaseBatchMax = 128;

uint64_t run_bytes(unsigned block_shift) {
  return uint64_t{cache::run_blocks_max(block_shift)} << block_shift;
}

}  // namespace

Result<std::unique_ptr<MappedFrames>> MappedFrames::create(std::byte* base, PlacedPages& pages,
                                                           HintTable& hints,
                                                           const MappedFramesOptions& options) {
  auto zeros = platform::map_anonymous(run_bytes(options.block_shift));
  if (!zeros) return zeros.status();
  // Never written: every page of it is the kernel's one page of zeros, which stays in the processor's cache.
  (void)platform::advise(zeros->data(), zeros->bytes(), platform::Advice::kNoHugePage);
  auto pool = BlockPool::create(options.frame_count, options.block_shift);
  if (!pool) return pool.status();
  return std::unique_ptr<MappedFrames>(
      new MappedFrames(base, pages, hints, options, std::move(*zeros), std::move(*pool)));
}

MappedFrames::MappedFrames(std::byte* base, PlacedPages& pages, HintTable& hints,
                           const MappedFramesOptions& options, platform::Mapping zeros,
                           std::unique_ptr<BlockPool> pool)
    : base_(base),
      pages_(pages),
      hints_(hints),
      along_(options.block_shift),
      options_(options),
      staging_(block_bytes(), run_bytes(options.block_shift), options.runs_max),
      zeros_(std::move(zeros)),
      pool_(std::move(pool)) {}

// Who forks would wait for ever behind others who come and go, so these wait for it.
class MappedFrames::Moving {
 public:
  explicit Moving(MappedFrames& frames) {
    if (frames.forks_.load_relaxed()) std::lock_guard waits(frames.forking_);
    held_ = std::shared_lock(frames.moving_);
  }

 private:
  std::shared_lock<std::shared_mutex> held_;
};

void MappedFrames::lock_for_fork() {
  forking_.lock();
  forks_.store_relaxed(true);
  moving_.lock();
  has_forked_.store_relaxed(true);
}

void MappedFrames::unlock_after_fork() {
  moving_.unlock();
  forks_.store_relaxed(false);
  forking_.unlock();
}

void MappedFrames::install(std::span<const Resident> run, Contents contents, const std::byte* staging,
                           bool writable) {
  if (!has_address(run.front().block)) return install_in_pool(run, contents, staging);
  if (contents == Contents::kFilled && !staging) return;  // it was read into the pool
  std::optional<Moving> moving;
  if (block_bytes() > kMmuPageBytes || !pages_.copies_pages_at_once()) moving.emplace(*this);
  const std::byte* source = contents == Contents::kFilled ? staging : zeros_.data();
  pool_->note_in_place(run);
  // Before the pages, so that who waits for them does not ask again.
  // A block that comes by itself was asked for, most likely by a load.
  const HintTable::Hint clean =
      run.size() == 1 && contents == Contents::kFilled ? HintTable::Hint::kLoaded : HintTable::Hint::kClean;
  for (const Resident& resident : run) hints_.set(resident.block, writable ? HintTable::Hint::kGo : clean);
  std::byte* const address = address_of(run.front().block);
  const uint64_t bytes = run.size() << options_.block_shift;
  if (contents == Contents::kInPlace) return pages_.adopt(address, bytes);
  must(pages_.copy(address, source, bytes, writable));
}

void MappedFrames::install_in_pool(std::span<const Resident> run, Contents contents,
                                   const std::byte* staging) {
  if (contents == Contents::kFilled && !staging) return;
  for (const Resident& resident : run) {
    const BlockPool::Place place = pool_->take(resident.frame);
    if (contents == Contents::kFilled) {
      std::memcpy(place.data, staging, block_bytes());
      staging += block_bytes();
    } else if (contents == Contents::kZeros && !place.is_zero) {
      std::memset(place.data, 0, block_bytes());
    }
  }
}

// Pooled blocks are stored to by calls that hold them.
void MappedFrames::begin_writeback(std::span<const Resident> run) {
  for_each_placed(run, [&](std::span<const Resident> piece) {
    must(pages_.begin_writeback(address_of(piece.front().block), piece.size() << options_.block_shift));
    for (const Resident& resident : piece) hints_.clear_dirty(resident.block);
  });
}

// A block that is not placed has the rights of the pool.
void MappedFrames::copy_out(Resident resident, std::byte* to) {
  if (placement().is_placed(resident))
    must(pages_.copy_out(to, address_of(resident.block), block_bytes()));
  else
    std::memcpy(to, placement().data(resident, options_.block_shift), block_bytes());
}

void MappedFrames::let_read(std::span<const Resident> run) {
  for_each_placed(run, [&](std::span<const Resident> piece) {
    must(pages_.let_read(address_of(piece.front().block), piece.size() << options_.block_shift));
  });
}

void MappedFrames::end_writeback(Resident resident) {
  if (placement().is_placed(resident)) pages_.end_writeback(address_of(resident.block), block_bytes());
}

template <class Visit>
void MappedFrames::for_each_placed(std::span<const Resident> run, Visit visit) const {
  const Placement where = placement();
  while (!run.empty()) {
    const auto is_placed = [&](const Resident& resident) { return where.is_placed(resident); };
    const auto begin = std::find_if(run.begin(), run.end(), is_placed);
    const auto end = std::find_if_not(begin, run.end(), is_placed);
    if (begin != end) visit(std::span<const Resident>(begin, end));
    run = {end, run.end()};
  }
}

// Out of the pool.
void MappedFrames::copy_to_address(Resident resident, bool writable) {
  hints_.set(resident.block, writable ? HintTable::Hint::kGo : HintTable::Hint::kClean);
  must(pages_.copy(address_of(resident.block), placement().data(resident, options_.block_shift),
                   block_bytes(), writable));
}

// The place's memory stays for the next block.
void MappedFrames::place(Resident resident, bool writable) {
  const Moving moving(*this);
  copy_to_address(resident, writable);
  pool_->give_back({&resident, 1});
  pool_->note_in_place({&resident, 1});
}

// After a fork its pages may be another process's as well, until they are stored to.
bool MappedFrames::lifts(BlockId block) const {
  return has_address(block) && block_bytes() == kMmuPageBytes && !has_forked_.load_relaxed() &&
         pages_.lifts(address_of(block), block_bytes());
}

bool MappedFrames::lift(std::span<const Resident> blocks) {
  const Moving moving(*this);
  if (has_forked_.load_relaxed()) return false;
  static_assert(kLiftedMax <= platform::PageLifter::kPagesMax);
  iovec pages[kLiftedMax], to[kLiftedMax];
  size_t count = 0;
  for (const Resident& resident : blocks) {
    hints_.set(resident.block, HintTable::Hint::kUnseen);
    pages[count] = {address_of(resident.block), kMmuPageBytes};
    to[count++] = {pool_->take_instead(resident.frame), kMmuPageBytes};
  }
  if (pages_.lift({pages, count}, {to, count})) return true;
  for (size_t i = 0; i < count; ++i) {
    pool_->note_in_place({&blocks[i], 1});
    pool_->give_back(static_cast<std::byte*>(to[i].iov_base));
  }
  return false;
}

// Also while another thread forks, or this one, which faults: a page comes as a whole, and a child that has been given
// a copy of it keeps what it finds in place.
void MappedFrames::put_back(Resident resident) {
  copy_to_address(resident, false);
  pool_->note_in_place({&resident, 1});
}

void MappedFrames::release(std::span<const Resident> victims) {
  const Moving moving(*this);
  iovec ranges[kReleaseBatchMax];
  while (!victims.empty()) {
    const size_t count = std::min<size_t>(victims.size(), kReleaseBatchMax);
    size_t in_place = 0;
    for (const Resident& victim : victims.first(count)) {
      if (!placement().is_placed(victim)) continue;
      ranges[in_place++] = {address_of(victim.block), block_bytes()};
      hints_.set(victim.block, HintTable::Hint::kUnseen);
    }
    if (in_place > 0) pages_.release({ranges, in_place});
    pool_->give_back(victims.first(count));
    victims = victims.subspan(count);
  }
}

size_t MappedFrames::release_batch_max() const {
  return std::clamp<uint64_t>(kReleaseBatchBytes >> options_.block_shift, 1, kReleaseBatchMax);
}

// Where the next use has to be noticed, it still is.
void MappedFrames::allow_stores(std::span<const Resident> run) {
  for (const Resident& resident : run) {
    const HintTable::Hint hint = hints_.get(resident.block);
    if (HintTable::is_along(hint)) along_.note_stored(resident.block);
    if (HintTable::is_clean(hint)) hints_.set(resident.block, HintTable::Hint::kGo);
  }
  must(pages_.allow_stores(address_of(run.front().block), run.size() << options_.block_shift));
}

// Every use of a loose block is.
void MappedFrames::watch_for_use(Resident resident) {
  if (!placement().is_placed(resident)) return;
  const bool is_along = HintTable::is_along(hints_.get(resident.block));
  hints_.set(resident.block, is_along ? HintTable::Hint::kAlongUnseen : HintTable::Hint::kUnseen);
}

void MappedFrames::watch_for_store(Resident resident) {
  if (!has_address(resident.block)) return;
  hints_.set(resident.block, HintTable::Hint::kAlong);
  along_.note_came(resident.block);
}

}  // namespace spw::access
