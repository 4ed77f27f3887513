#include "store/balanced/chunk_table.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace spw::store {

Status ChunkTable::allocate(uint64_t chunks) {
  auto memory = platform::map_anonymous(round_up(chunks * sizeof(uint64_t), kMmuPageBytes));
  if (!memory) return memory.status();
  memory_ = std::move(*memory);
  return {};
}

std::optional<ChunkWord> ChunkTable::pin(uint64_t chunk, To to) {
  Atomic<uint64_t>& word = words()[chunk];
  const uint64_t kept = to == To::kWrite ? ~ChunkWord::kMoving : ~uint64_t{0};
  uint64_t seen = word.load_relaxed();
  while (ChunkWord(seen).is_assigned()) {
    SPW_CHECK(ChunkWord(seen).users() < ChunkWord::kUsersMax);
    const uint64_t pinned = (seen & kept) + 1;
    if (word.cas_weak_acquire(seen, pinned)) return ChunkWord(pinned);
  }
  return std::nullopt;
}

void ChunkTable::unpin(uint64_t chunk, bool wrote) {
  Atomic<uint64_t>& word = words()[chunk];
  if (wrote && !ChunkWord(word.load_relaxed()).holds()) word.fetch_or_relaxed(ChunkWord::kHolds);
  const ChunkWord before(word.fetch_sub_acq_rel(1));
  SPW_DCHECK(before.is_assigned() && before.users() > 0);
}

std::optional<ChunkWord> ChunkTable::take(uint64_t chunk) {
  Atomic<uint64_t>& word = words()[chunk];
  uint64_t seen = word.load_relaxed();
  while (ChunkWord(seen).is_assigned() && ChunkWord(seen).users() == 0)
    if (word.cas_weak_acq_rel(seen, 0)) return ChunkWord(seen);
  return std::nullopt;
}

std::optional<ChunkWord> ChunkTable::take_if_last(uint64_t chunk) {
  Atomic<uint64_t>& word = words()[chunk];
  uint64_t seen = word.load_relaxed();
  while (ChunkWord(seen).is_assigned() && ChunkWord(seen).users() == 1 && !ChunkWord(seen).holds())
    if (word.cas_weak_acq_rel(seen, 0)) return ChunkWord(seen);
  return std::nullopt;
}

std::optional<ChunkWord> ChunkTable::begin_move(uint64_t chunk) {
  Atomic<uint64_t>& word = words()[chunk];
  uint64_t seen = word.load_relaxed();
  while (ChunkWord(seen).is_assigned() && ChunkWord(seen).users() == 0 && ChunkWord(seen).holds())
    if (word.cas_weak_acquire(seen, (seen | ChunkWord::kMoving) + 1)) return ChunkWord(seen);
  return std::nullopt;
}

ChunkTable::Moved ChunkTable::end_move(uint64_t chunk, ChunkWord there) {
  SPW_DCHECK(there.is_assigned() && there.users() == 0);
  Atomic<uint64_t>& word = words()[chunk];
  uint64_t seen = word.load_relaxed();
  while (ChunkWord(seen).is_moving() && ChunkWord(seen).users() == 1)
    if (word.cas_weak_acq_rel(seen, there.bits() | ChunkWord::kHolds)) return Moved::kYes;
  return ChunkWord(seen).is_moving() ? Moved::kBusy : Moved::kChanged;
}

void ChunkTable::give_up_move(uint64_t chunk) {
  words()[chunk].fetch_and_relaxed(~ChunkWord::kMoving);
  unpin(chunk, false);
}

void ChunkTable::assign(uint64_t chunk, ChunkWord word) {
  SPW_DCHECK(!load(chunk).is_assigned());
  // First, so that a child forked in between looks at the word, too.
  if (end_.load_relaxed() <= chunk) end_.store_relaxed(chunk + 1);
  words()[chunk].store_release(word.bits());
}

void ChunkTable::in_child() {
  const uint64_t end = end_.load_relaxed();
  for (uint64_t chunk = 0; chunk < end; ++chunk) {
    const uint64_t bits = words()[chunk].load_relaxed();
    if (ChunkWord(bits).users() > 0)
      words()[chunk].store_relaxed(bits & ~(ChunkWord::kUsersMax | ChunkWord::kMoving));
  }
}

}  // namespace spw::store
