#include "front/mapped/mapped_frames.h"

#include <algorithm>

#include "base/units.h"

namespace spw::front {

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

Result<std::unique_ptr<MappedFrames>> MappedFrames::create(std::byte* base, const platform::UserFault& faults,
                                                           HintTable& hints,
                                                           const MappedFramesOptions& options) {
  auto zeros = platform::map_anonymous(run_bytes(options.block_shift));
  if (!zeros) return zeros.status();
  // Never written: every page of it is the kernel's one page of zeros, which stays in the processor's cache.
  (void)platform::advise(zeros->data(), zeros->bytes(), platform::Advice::kNoHugePage);
  return std::unique_ptr<MappedFrames>(new MappedFrames(base, faults, hints, options, std::move(*zeros)));
}

MappedFrames::MappedFrames(std::byte* base, const platform::UserFault& faults, HintTable& hints,
                           const MappedFramesOptions& options, platform::Mapping zeros)
    : base_(base),
      faults_(faults),
      hints_(hints),
      options_(options),
      staging_(block_bytes(), run_bytes(options.block_shift), options.runs_max),
      zeros_(std::move(zeros)) {}

void MappedFrames::install(std::span<const Resident> run, Contents contents, const std::byte* staging,
                           bool writable) {
  const std::byte* source = contents == Contents::kFilled ? staging : zeros_.data();
  // Before the pages, so that who waits for them does not ask again.
  for (const Resident& resident : run)
    hints_.set(resident.block, writable ? HintTable::Hint::kGo : HintTable::Hint::kClean);
  if (contents == Contents::kInPlace) return;
  must(faults_.copy(address_of(run.front().block), source, run.size() << options_.block_shift, !writable));
}

void MappedFrames::begin_writeback(std::span<const Resident> run) {
  must(faults_.write_protect(address_of(run.front().block), run.size() << options_.block_shift, true));
  for (const Resident& resident : run) hints_.clear_dirty(resident.block);
}

void MappedFrames::release(std::span<const Resident> victims) {
  iovec ranges[kReleaseBatchMax];
  while (!victims.empty()) {
    const size_t count = std::min<size_t>(victims.size(), kReleaseBatchMax);
    for (size_t i = 0; i < count; ++i) {
      ranges[i] = {address_of(victims[i].block), block_bytes()};
      hints_.set(victims[i].block, HintTable::Hint::kUnseen);
    }
    releaser_.release({ranges, count});
    victims = victims.subspan(count);
  }
}

size_t MappedFrames::release_batch_max() const {
  return std::clamp<uint64_t>(kReleaseBatchBytes >> options_.block_shift, 1, kReleaseBatchMax);
}

// Where the next use has to be noticed, it still is.
void MappedFrames::allow_stores(std::span<const Resident> run) {
  for (const Resident& resident : run)
    if (hints_.get(resident.block) == HintTable::Hint::kClean)
      hints_.set(resident.block, HintTable::Hint::kGo);
  must(faults_.write_protect(address_of(run.front().block), run.size() << options_.block_shift, false));
}

void MappedFrames::watch_for_use(Resident resident) { hints_.set(resident.block, HintTable::Hint::kUnseen); }

}  // namespace spw::front
