#include "process/pinned_ranges.h"

#include <algorithm>
#include <numeric>

#include "base/in_runtime.h"
#include "base/units.h"

namespace spw::process {

namespace {
// Blocks asked for ahead of the one that is being pinned, so that they are read in large requests.
constexpr uint64_t kAheadBlocks = 2 * cache::kGroupBlocks;
}  // namespace

PinnedRanges::PinnedRanges(cache::SharedCache& cache, access::Engine& engine, unsigned block_shift,
                           uint32_t limit_min)
    : cache_(cache),
      engine_(engine),
      block_shift_(block_shift),
      limit_min_(limit_min),
      partitions_(cache.partition_map()),
      charged_(partitions_.count()) {}

uint32_t PinnedRanges::budget(uint32_t frame_limit) const {
  const uint64_t limit = std::min(frame_limit, limit_min_);
  return static_cast<uint32_t>(cache_.frames_per_partition() * limit / cache_.frame_count() / 2);
}

std::vector<uint32_t> PinnedRanges::charges_of(BlockId first, uint64_t count) const {
  std::vector<uint32_t> charges(partitions_.count());
  while (count > 0) {
    const uint64_t piece = std::min(cache::kGroupBlocks - (first.value & (cache::kGroupBlocks - 1)), count);
    charges[partitions_.of(first).value] += static_cast<uint32_t>(piece);
    first = first + piece;
    count -= piece;
  }
  return charges;
}

Status PinnedRanges::charge(BlockId first, uint64_t count) {
  auto refused = [&](uint32_t room) {
    return Status::sentence(ENOMEM, "pinned ranges may take half of the memory, about " +
                                        format_size((uint64_t{room} * partitions_.count()) << block_shift_) +
                                        " in all");
  };
  std::lock_guard lock(mutex_);
  const uint32_t room = budget(cache_.frame_limit());
  if (count > uint64_t{room} * partitions_.count()) return refused(room);
  const std::vector<uint32_t> charges = charges_of(first, count);
  for (size_t p = 0; p < charges.size(); ++p)
    if (charged_[p] + charges[p] > room) return refused(room);
  for (size_t p = 0; p < charges.size(); ++p) charged_[p] += charges[p];
  return {};
}

// Lets go of what is pinned of a range that is in the table no more.
void PinnedRanges::release(BlockId first, const Range& range) {
  for (FrameId frame : range.frames) cache_.unpin(engine_.client(), frame);
  std::lock_guard lock(mutex_);
  const std::vector<uint32_t> charges = charges_of(first, range.count);
  for (size_t p = 0; p < charges.size(); ++p) charged_[p] -= charges[p];
}

Status PinnedRanges::pin(BlockId first, uint64_t count) {
  InRuntime guard;
  engine_.watch();
  if (Status status = charge(first, count); !status) return status;
  cache::Client& client = engine_.client();
  Range range{count, {}};
  range.frames.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    if (i % kAheadBlocks == 0) cache_.prefetch(client, first + i, std::min(kAheadBlocks, count - i));
    cache::Pin pin;
    if (Status status = cache_.pin(client, first + i, cache::Access::kRead, &pin); !status) {
      release(first, range);
      return status;
    }
    range.frames.push_back(pin.frame);
  }
  std::lock_guard lock(mutex_);
  ranges_.emplace(first, std::move(range));
  return {};
}

Status PinnedRanges::unpin(BlockId first, uint64_t count) {
  InRuntime guard;
  Table::node_type node;
  {
    std::lock_guard lock(mutex_);
    auto [at, end] = ranges_.equal_range(first);
    while (at != end && at->second.count != count) ++at;
    if (at == end) return Status::sentence(EINVAL, "no such range is pinned");
    node = ranges_.extract(at);
  }
  release(first, node.mapped());
  return {};
}

void PinnedRanges::unpin_all_within(BlockId first, uint64_t count) {
  InRuntime guard;
  std::vector<Table::node_type> nodes;
  {
    std::lock_guard lock(mutex_);
    for (auto at = ranges_.begin(); at != ranges_.end();) {
      auto next = std::next(at);
      const bool overlaps =
          at->first.value < first.value + count && first.value < at->first.value + at->second.count;
      if (overlaps) nodes.push_back(ranges_.extract(at));
      at = next;
    }
  }
  for (const Table::node_type& node : nodes) release(node.key(), node.mapped());
}

uint64_t PinnedRanges::blocks() const {
  std::lock_guard lock(mutex_);
  return std::accumulate(charged_.begin(), charged_.end(), uint64_t{0});
}

Status PinnedRanges::change_limit(uint32_t frames) {
  std::lock_guard lock(mutex_);
  if (*std::max_element(charged_.begin(), charged_.end()) > budget(frames))
    return Status::sentence(EBUSY, "pinned ranges would take more than half of so little memory");
  cache_.set_frame_limit(frames);
  return {};
}

}  // namespace spw::process
