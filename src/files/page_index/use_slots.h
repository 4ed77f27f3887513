// Use slots: who might still hold what was taken out of a shared structure, so that it is freed
// only when nobody can. Readers announce themselves in a cache line of their own and write
// nothing that is shared (ScaleCache, EuroSys '24, section 4: per-thread tracking; here of
// epochs instead of single nodes, so that a lookup costs one store instead of one per level).
//
//   reader                                   who frees
//   1 slot = epoch      (release)            a unlink the object: no new reader can come upon it
//   2 barrier                                b stamp = epoch++              advance()
//   3 read links, use objects                c process barrier, then the least of all slots but 0   oldest_in_use()
//   4 slot = 0          (release)            d stamp < oldest: free it
//
// Why d is sound. Let a reader have found object X in step 3, so that it read the link before a was visible to it.
//   - It announced an epoch <= stamp: had it read a later one in step 1, it would have read it (acquire) from an
//     advance() (release) that came after a, and would have seen X unlinked.
//   - c sees that announcement or the reader's leaving: steps 1 and 3 and steps a and c are a store-load race on both
//     sides. The reader's barrier holds back only the compiler; the one of c reaches into all threads
//     (platform/process_barrier.h). Where the kernel has none, both are full fences.
//   - If c sees that it left, the acquire load pairs with the release of 4: what the reader did comes before the
//     freeing. The same goes for a later announcement, which is a release, too.
// oldest_in_use() reads the epoch before its barrier: what is stamped
// later may be held by readers it has not looked for.
//
// Invariants:  slot = 0 <=> its thread is outside; slot <= epoch
//              a slot belongs to at most one running thread; of a thread that ended it is 0
// Threads: any, at any time, also in signal handlers once the thread has entered before. Construction and destruction:
//   nobody else is inside or enters.
// Lifetime: outlives what is freed by it. A thread takes a slot when it first enters and gives it back when it ends.
// Limits: kSlotsMax threads with slots of their own. Those beyond, and threads that enter while their thread_local
//   objects are being destroyed, share kCrowds words of {epoch, count}: such a word keeps the epoch of the first of
//   those inside until all have left, which is earlier than most entered in, so it frees late, never early.
//   kInstancesMax objects of this class in a process. A reader that stays inside holds back all freeing. A forked child
//   keeps the slots of the threads it has not got.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/status.h"
#include "platform/memory.h"

namespace spw::files {

class UseSlots {
 public:
  static constexpr uint32_t kSlotsMax = 4096;
  static constexpr uint32_t kCrowds = 8;
  static constexpr uint32_t kInstancesMax = 8;

  enum class Barrier : uint8_t { kAsKernelAllows, kFullFences };  // the latter for tests
  struct Options {
    Barrier barrier = Barrier::kAsKernelAllows;
    uint32_t slots = kSlotsMax;  // fewer for tests
  };

  // `memory`: of map_memory().
  explicit UseSlots(platform::Mapping memory) : UseSlots(std::move(memory), Options()) {}
  UseSlots(platform::Mapping memory, Options options);
  ~UseSlots();
  UseSlots(const UseSlots&) = delete;
  UseSlots& operator=(const UseSlots&) = delete;
  static Result<platform::Mapping> map_memory();

  // Between its construction and destruction nothing that was
  // reachable in it is freed. Nests; ends in the order of a scope.
  class Guard;

  // The stamp of everything that was made unreachable before.
  uint64_t advance() { return epoch_.fetch_add_seq_cst(1); }
  // What has a stamp below this is held by nobody any more. Some microseconds: ask for many objects at once.
  uint64_t oldest_in_use();

  // The same number for a thread as long as it lives, for spreading threads over a structure's parts.
  uint32_t thread_number();
  // Slots that threads have, or had and left to be taken over.
  uint32_t slots_used() const { return slots_used_.load_relaxed(); }
  uint32_t crowd_size() const;

 private:
  friend struct UseSlotsOfThread;
  struct alignas(64) Slot {
    Atomic<uint64_t> epoch{0};  // 0: outside
    Atomic<uint32_t> taken{0};
  };
  static_assert(sizeof(Slot) == 64);
  // Epoch and how many are inside.
  struct alignas(64) Crowd {
    static constexpr unsigned kCountBits = 20;
    static constexpr uint64_t kCountMask = (uint64_t{1} << kCountBits) - 1;
    Atomic<uint64_t> word{0};
  };
  // What a thread knows of an instance. `slot` nullptr: it goes with the crowd.
  struct OfThread {
    uint64_t instance;
    Slot* slot;
  };

  OfThread& of_this_thread();
  void join(OfThread& of_thread);
  Slot* take_slot();
  Atomic<uint64_t>& enter_crowd();
  void reader_barrier() const {
    if (has_process_barrier_) [[likely]]
      std::atomic_signal_fence(std::memory_order_seq_cst);
    else
      std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  static constinit thread_local OfThread t_instances[kInstancesMax]
      __attribute__((tls_model("initial-exec")));

  // Read by all, changed seldom.
  alignas(64) Atomic<uint64_t> epoch_{1};
  Slot* slots_ = nullptr;
  uint64_t instance_ = 0;  // no two in a process have the same
  uint32_t number_ = 0;    // below kInstancesMax, used again
  uint32_t slots_max_;
  bool has_process_barrier_;
  Atomic<uint32_t> slots_used_{0};
  platform::Mapping memory_;
  Crowd crowds_[kCrowds];
};

class UseSlots::Guard {
 public:
  explicit Guard(UseSlots& slots) {
    Slot* slot = slots.of_this_thread().slot;
    if (slot == nullptr) [[unlikely]] {
      crowd_ = &slots.enter_crowd();
      return;
    }
    if (slot->epoch.load_relaxed() != 0) return;  // inside already
    slot->epoch.store_release(slots.epoch_.load_acquire());
    slots.reader_barrier();
    slot_ = slot;
  }
  ~Guard() {
    if (slot_)
      slot_->epoch.store_release(0);
    else if (crowd_) [[unlikely]]
      crowd_->fetch_sub_acq_rel(1);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Slot* slot_ = nullptr;
  Atomic<uint64_t>* crowd_ = nullptr;
};

inline UseSlots::OfThread& UseSlots::of_this_thread() {
  OfThread& of_thread = t_instances[number_];
  if (of_thread.instance != instance_) [[unlikely]]
    join(of_thread);
  return of_thread;
}

}  // namespace spw::files
