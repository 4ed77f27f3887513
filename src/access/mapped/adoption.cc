#include "access/mapped/adoption.h"

#include <algorithm>
#include <span>

#include "base/units.h"
#include "platform/memory.h"

namespace spw::access {

namespace {

// Looked at in one step: whole groups of the largest blocks, or less at the end of the space.
constexpr uint64_t kStepBytes = cache::kGroupBlocks << kMaxBlockShift;
constexpr uint64_t kStepPages = kStepBytes / kMmuPageBytes;

struct Step {
  const Adoption& all;
  const std::byte* zeros;  // a block
  std::byte* first;        // of the step
  std::span<const bool> present;

  uint64_t pages_per_block() const { return (uint64_t{1} << all.block_shift) / kMmuPageBytes; }
  BlockId block_of(uint64_t page) const {
    const auto offset = static_cast<uint64_t>(first - all.base) + page * kMmuPageBytes;
    return BlockId(offset >> all.block_shift);
  }

  // Puts zeros where pages of the block that begins at `page` are missing.
  Status complete(uint64_t page) const {
    const uint64_t end = page + pages_per_block();
    while (page < end) {
      uint64_t run = page;
      while (run < end && present[run] == present[page]) ++run;
      if (!present[page]) {
        std::byte* address = first + page * kMmuPageBytes;
        if (Status s = all.placed.complete(address, zeros, (run - page) * kMmuPageBytes); !s) return s;
      }
      page = run;
    }
    return {};
  }
};

// The step's blocks that are there at least in part, run by run.
Status adopt_step(const Step& step) {
  const uint64_t stride = step.pages_per_block();
  BlockId run_first;
  uint64_t run_length = 0;
  const auto end_run = [&] {
    if (run_length > 0) step.all.cache.adopt(step.all.client, run_first, run_length);
    run_length = 0;
  };
  for (uint64_t page = 0; page < step.present.size(); page += stride) {
    const auto here = step.present.subspan(page, stride);
    if (std::find(here.begin(), here.end(), true) == here.end()) {
      end_run();
      continue;
    }
    if (Status s = step.complete(page); !s) return s;
    if (run_length++ == 0) run_first = step.block_of(page);
  }
  end_run();
  return {};
}

}  // namespace

Status Adoption::run() const {
  auto zeros = platform::map_anonymous(uint64_t{1} << block_shift);
  if (!zeros) return zeros.status();
  auto present = platform::map_anonymous(kStepPages);
  if (!present) return present.status();
  Status status;
  const auto open_dead = [&](uint64_t begin, uint64_t end) {
    if (begin == end || !status) return;
    status = platform::advise(base + begin, end - begin, platform::Advice::kDontNeed);
    if (status && !is_in_child) status = placed.renew(base + begin, end - begin);
  };
  const auto adopt_live = [&](uint64_t begin, uint64_t end) {
    for (; begin < end && status; begin += kStepBytes) {
      const uint64_t count = std::min(kStepBytes, end - begin) / kMmuPageBytes;
      const std::span<bool> found(reinterpret_cast<bool*>(present->data()), count);
      status = pages.read(base + begin, found);
      if (status) status = adopt_step({*this, zeros->data(), base + begin, found});
    }
  };
  uint64_t at = 0;
  regions.for_each_live_run(BlockId(0), used_bytes >> block_shift, [&](BlockId first, uint64_t count) {
    const uint64_t begin = first.value << block_shift, end = begin + (count << block_shift);
    open_dead(at, begin);
    adopt_live(begin, end);
    at = end;
  });
  open_dead(at, used_bytes);
  return status;
}

}  // namespace spw::access
