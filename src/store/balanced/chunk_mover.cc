#include "store/balanced/chunk_mover.h"

#include <new>
#include <utility>

#include "platform/time.h"
#include "store/transfer.h"

namespace spw::store {

namespace {

constexpr double kMoveSamples = 8;

}  // namespace

ChunkMover::~ChunkMover() {
  ending_.store_release(true);
  if (started_.load_acquire()) wake_.wake();
  thread_.join();
}

// ---- Other threads ----

void ChunkMover::note_use(uint64_t chunk, ChunkWord word, uint64_t now_ns) {
  const uint32_t count = heat_.note(chunk, now_ns);
  if (tier_of(word) > 0 && count >= kHot && count % kLookAgain == 0) ask(hot_, chunk);
}

void ChunkMover::leave(uint64_t chunk) { ask(leaving_, chunk); }

// Both exchange sleeps_: either the thread sees the chunk after it has said that it sleeps, or it is seen to sleep.
void ChunkMover::ask(Waiting& waiting, uint64_t chunk) {
  if (is_child_) return;
  waiting[chunk % kWaiting].store_relaxed(chunk + 1);
  const bool slept = sleeps_.exchange_acq_rel(false);
  // Without a thread nothing moves, which is no error. It may sleep before it is known to have started.
  if (!started_.load_acquire() && !start()) return;
  if (slept) wake_.wake();
}

Status ChunkMover::start() {
  std::lock_guard lock(start_mutex_);
  if (started_.load_relaxed()) return {};
  auto wake = platform::WakeFd::create();
  if (!wake) return wake.status();
  wake_ = std::move(*wake);
  auto thread = platform::Thread::start([this] { work(); });
  if (!thread) return thread.status();
  thread_ = std::move(*thread);
  started_.store_release(true);
  return {};
}

void ChunkMover::lock_for_fork() {
  std::lock_guard lock(places_.mutex());
  may_move_ = false;
}

void ChunkMover::in_child() {
  is_child_ = true;
  is_noting_ = false;
  new (&start_mutex_) std::mutex;
  new (&thread_) platform::Thread;  // the parent's is not there
}

// ---- The thread ----

bool ChunkMover::is_idle() const {
  for (const Waiting* waiting : {&hot_, &leaving_})
    for (const auto& chunk : *waiting)
      if (chunk.load_relaxed() != 0) return false;
  return !ending_.load_acquire();
}

void ChunkMover::work() {
  while (!ending_.load_acquire()) {
    sleeps_.exchange_acq_rel(true);
    if (is_idle()) {
      buffer_ = {};
      wake_.wait(-1, UINT64_MAX);
    }
    sleeps_.exchange_acq_rel(false);
    for (size_t i = 0; i < kWaiting && !ending_.load_acquire(); ++i) {
      if (const uint64_t chunk = leaving_[i].exchange_acq_rel(0); chunk != 0) move_away(chunk - 1);
      if (const uint64_t chunk = hot_[i].exchange_acq_rel(0); chunk != 0) move_up(chunk - 1);
    }
  }
}

void ChunkMover::move_away(uint64_t chunk) {
  const ChunkWord word = table_.load(chunk);
  if (!word.is_assigned() || !word.holds() || !places_.is_refusing(word.member())) return;
  move(chunk, {.but = uint32_t{1} << word.member()});
}

void ChunkMover::move_up(uint64_t chunk) {
  const uint64_t begun_ns = platform::monotonic_ns();
  const ChunkWord word = table_.load(chunk);
  if (!word.is_assigned() || tier_of(word) == 0 || heat_.of(chunk, begun_ns) < kHot) return;
  Done done = move(chunk, {.end_tier = tier_of(word)});
  if (done == Done::kNoRoom) done = move_in_place_of_another(chunk, tier_of(word));
  if (done == Done::kNoRoom) return;
  if (done == Done::kMoved) moved_up_.fetch_add_relaxed(1);
  const uint64_t rest_ns = kRestTimes * (platform::monotonic_ns() - begun_ns);
  if (!ending_.load_acquire()) wake_.wait(-1, rest_ns);
}

// kNoRoom: it is not worth it.
ChunkMover::Done ChunkMover::move_in_place_of_another(uint64_t chunk, uint32_t tier) {
  const uint64_t now_ns = platform::monotonic_ns();
  const auto victim = coldest_above(tier, now_ns);
  if (!victim || !is_worth(chunk, *victim, now_ns)) return Done::kNoRoom;
  const ChunkWord cold = table_.load(*victim);
  Places::Place there;
  if (!cold.is_assigned() || move(*victim, {.first_tier = tier_of(cold) + 1}, &there) != Done::kMoved)
    return Done::kNot;
  // What was there is overwritten whole.
  const uint64_t bytes = places_.chunk_bytes();
  if (places_.store_of(there.member).reserve(there.slot * bytes, bytes)) return move_to(chunk, there);
  give_back(there);
  return Done::kNot;
}

std::optional<uint64_t> ChunkMover::coldest_above(uint32_t tier, uint64_t now_ns) {
  const uint64_t end = table_.end();
  std::optional<uint64_t> coldest;
  uint32_t looked = 0;
  for (uint64_t i = 0; i < std::min(end, kLookedWordsMax) && looked < kLooked; ++i, ++hand_) {
    if (hand_ >= end) hand_ = 0;
    const ChunkWord word = table_.load(hand_);
    if (!word.is_assigned() || !word.holds() || tier_of(word) >= tier) continue;
    ++looked;
    if (!coldest || heat_.of(hand_, now_ns) < heat_.of(*coldest, now_ns)) coldest = hand_;
  }
  return coldest;
}

bool ChunkMover::is_worth(uint64_t hot, uint64_t cold, uint64_t now_ns) const {
  const double hot_uses = heat_.of(hot, now_ns), cold_uses = heat_.of(cold, now_ns);
  if (hot_uses <= 2 * cold_uses + kMargin) return false;
  const double slow_ns = places_.shares().read_ns(table_.load(hot).member()),
               fast_ns = places_.shares().read_ns(table_.load(cold).member());
  return kUsesAhead * (hot_uses - cold_uses) * (slow_ns - fast_ns) > 2 * move_ns_;
}

ChunkMover::Done ChunkMover::move(uint64_t chunk, const Places::Wanted& wanted, Places::Place* left) {
  if (buffer_.data() == nullptr) {
    auto buffer = platform::map_anonymous(places_.chunk_bytes(), places_.alignment_bytes());
    if (!buffer) return Done::kNot;
    buffer_ = std::move(*buffer);
  }
  std::optional<Places::Place> there;
  int error = ENOSPC;
  {
    std::lock_guard lock(places_.mutex());
    if (!may_move_) return Done::kNot;
    there = places_.take(wanted, &error);
  }
  return there ? move_to(chunk, *there, left) : Done::kNoRoom;
}

ChunkMover::Done ChunkMover::move_to(uint64_t chunk, Places::Place there, Places::Place* left) {
  const uint64_t begun_ns = platform::monotonic_ns();
  std::optional<ChunkWord> word = table_.begin_move(chunk);
  for (unsigned i = 0; i < kEndTries && !word && table_.load(chunk).is_assigned(); ++i) {
    platform::sleep_ns(kTryAgainNs);
    word = table_.begin_move(chunk);
  }
  if (!word) {
    give_back(there);
    return Done::kNot;
  }
  if (!copy(*word, there) || !end_move(chunk, there)) {
    table_.give_up_move(chunk);
    give_back(there);
    return Done::kNot;
  }
  const Places::Place old{word->member(), word->slot()};
  if (left)
    *left = old;
  else
    give_back(old);
  moved_.fetch_add_relaxed(1);
  const auto took_ns = static_cast<double>(platform::monotonic_ns() - begun_ns);
  move_ns_ += (took_ns - move_ns_) / (move_ns_ == 0 ? 1 : kMoveSamples);
  return Done::kMoved;
}

bool ChunkMover::copy(ChunkWord from, Places::Place to) {
  const uint64_t bytes = places_.chunk_bytes();
  const std::span<std::byte> chunk(buffer_.data(), bytes);
  if (!transfer(places_.store_of(from.member()), Op::kRead, from.slot() * bytes, chunk)) return false;
  const Status written = transfer(places_.store_of(to.member), Op::kWrite, to.slot * bytes, chunk);
  if (!written) places_.shares().note_failed_write(to.member, written.error(), platform::monotonic_ns());
  return written.is_ok();
}

bool ChunkMover::end_move(uint64_t chunk, Places::Place there) {
  const ChunkWord word = ChunkWord::of(there.member, there.slot, true, 0);
  auto moved = ChunkTable::Moved::kBusy;
  for (unsigned i = 0; i < kEndTries && moved == ChunkTable::Moved::kBusy; ++i) {
    if (i > 0) platform::sleep_ns(kTryAgainNs);
    std::lock_guard lock(places_.mutex());
    if (!may_move_) return false;
    moved = table_.end_move(chunk, word);
  }
  return moved == ChunkTable::Moved::kYes;
}

void ChunkMover::give_back(Places::Place place) {
  const int error = places_.empty(place);
  std::lock_guard lock(places_.mutex());
  places_.give_back(place, error != 0);
}

}  // namespace spw::store
