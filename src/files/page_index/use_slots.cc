#include "files/page_index/use_slots.h"

#include <algorithm>
#include <mutex>

#include "base/check.h"
#include "base/units.h"
#include "platform/process_barrier.h"

namespace spw::files {

namespace {

// Which instances there are, for threads that end and give their slots back. (Thread-local objects have no other way to
// know whether what they point to is still there.)
constinit std::mutex g_mutex;
constinit UseSlots* g_instances[UseSlots::kInstancesMax] = {};
constinit uint64_t g_instances_made = 0;

}  // namespace

constinit thread_local UseSlots::OfThread UseSlots::t_instances[kInstancesMax] = {};

// Its destructor runs when the thread ends.
struct UseSlotsOfThread {
  bool noted = false;
  bool& ended;

  explicit UseSlotsOfThread(bool& flag) : ended(flag) {}
  ~UseSlotsOfThread() {
    ended = true;
    std::lock_guard lock(g_mutex);
    for (uint32_t i = 0; i < UseSlots::kInstancesMax; ++i) {
      UseSlots::OfThread& of_thread = UseSlots::t_instances[i];
      const bool there = g_instances[i] != nullptr && g_instances[i]->instance_ == of_thread.instance;
      if (there && of_thread.slot != nullptr) {
        SPW_CHECK(of_thread.slot->epoch.load_relaxed() == 0);
        of_thread.slot->taken.store_release(0);  // pairs with the acquire of who takes it over
      }
      of_thread = {};
    }
  }
};

namespace {

constinit thread_local bool t_ended = false;
thread_local UseSlotsOfThread t_at_end(t_ended);

}  // namespace

UseSlots::UseSlots(platform::Mapping memory, Options options)
    : slots_max_(std::min(options.slots, kSlotsMax)),
      has_process_barrier_(options.barrier == Barrier::kAsKernelAllows && platform::enable_process_barrier()),
      memory_(std::move(memory)) {
  slots_ = reinterpret_cast<Slot*>(memory_.data());
  std::lock_guard lock(g_mutex);
  auto* place = std::find(std::begin(g_instances), std::end(g_instances), nullptr);
  SPW_CHECK(place != std::end(g_instances));
  *place = this;
  number_ = static_cast<uint32_t>(place - g_instances);
  instance_ = ++g_instances_made;
}

UseSlots::~UseSlots() {
  std::lock_guard lock(g_mutex);
  g_instances[number_] = nullptr;
}

// A zeroed slot is a free one; pages of slots that nobody takes have no memory.
Result<platform::Mapping> UseSlots::map_memory() {
  return platform::map_anonymous(round_up(kSlotsMax * sizeof(Slot), kMmuPageBytes));
}

void UseSlots::join(OfThread& of_thread) {
  Slot* slot = nullptr;
  if (!t_ended) {
    t_at_end.noted = true;  // makes it, so that it is destroyed
    slot = take_slot();
  }
  of_thread = {instance_, slot};
}

UseSlots::Slot* UseSlots::take_slot() {
  for (uint32_t i = 0; i < slots_max_; ++i) {
    uint32_t free = 0;
    if (slots_[i].taken.load_relaxed() != 0 || !slots_[i].taken.cas_strong_acquire(free, 1)) continue;
    // Before its first announcement, so that whoever has to see the announcement looks this far.
    uint32_t used = slots_used_.load_relaxed();
    while (used < i + 1 && !slots_used_.cas_weak_seq_cst(used, i + 1)) {
    }
    return &slots_[i];
  }
  return nullptr;
}

// Whoever joins a word with a later epoch than it read itself got it by an acquire from one who had read that epoch: it
// has seen everything unlinked that is stamped before. The seq_cst operation and the fence are its barrier.
Atomic<uint64_t>& UseSlots::enter_crowd() {
  const uint64_t epoch = epoch_.load_acquire();
  Atomic<uint64_t>& word = crowds_[epoch % kCrowds].word;
  uint64_t seen = word.load_relaxed();
  uint64_t next;
  do {
    const uint64_t inside = seen & Crowd::kCountMask;
    SPW_CHECK(inside < Crowd::kCountMask);
    next = inside == 0 ? (epoch << Crowd::kCountBits) + 1 : seen + 1;
  } while (!word.cas_weak_seq_cst(seen, next));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return word;
}

uint64_t UseSlots::oldest_in_use() {
  uint64_t oldest = epoch_.load_seq_cst();
  if (has_process_barrier_)
    platform::process_barrier();
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t used = slots_used_.load_seq_cst();
  for (uint32_t i = 0; i < used; ++i) {
    const uint64_t epoch = slots_[i].epoch.load_acquire();
    if (epoch != 0) oldest = std::min(oldest, epoch);
  }
  for (Crowd& crowd : crowds_) {
    const uint64_t word = crowd.word.load_acquire();
    if ((word & Crowd::kCountMask) != 0) oldest = std::min(oldest, word >> Crowd::kCountBits);
  }
  return oldest;
}

uint32_t UseSlots::thread_number() {
  const Slot* slot = of_this_thread().slot;
  return slot == nullptr ? 0 : static_cast<uint32_t>(slot - slots_);
}

uint32_t UseSlots::crowd_size() const {
  uint64_t inside = 0;
  for (const Crowd& crowd : crowds_) inside += crowd.word.load_relaxed() & Crowd::kCountMask;
  return static_cast<uint32_t>(inside);
}

}  // namespace spw::files
