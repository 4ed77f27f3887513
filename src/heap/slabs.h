// Small objects in managed space: spans of one size class, with everything known about them outside the blocks.
//
// A span is a range of addresses divided into slots of one class. One bit a slot says whether
// it is in use. A thread takes the free slots of one word of that bitmap at a time (a run of
// up to 64 neighbours) and hands them out without touching shared memory, so that what a
// thread allocates together lies together. A free by another thread clears the slot's bit.
//
// Invariants, for a span between operations:
//   used bits = slots handed out + free slots that sit in a thread's run
//   free_slots = slots - used bits
//   a span not on its class's list has fewer than relist_at free slots
//   touched bit = the slot was in a run once; a slot never touched since the span was taken reads as zeros
// free_slots moves after the bits do, so it may lag (even below 0) while a free and a claim overlap.
//
//   bit   0 -> 1  refill(), under the class lock (exchange, acq_rel)
//         1 -> 0  free(), any thread (fetch_and, acq_rel): what the freeing thread did to the object happens before
//                 the slot's next owner gets it
//
// Threads: allocate and free from any thread. Lifetime: a thread's runs go back to their spans at the thread's end.
// Limits: objects of up to object_bytes_max(), aligned to at most that.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <mutex>

#include "base/atomic.h"
#include "heap/page_map.h"
#include "heap/range_allocator.h"
#include "heap/size_classes.h"
#include "region/region_map.h"

namespace spw::heap {

struct Span {
  uintptr_t base = 0;
  uint32_t size_class = 0;
  uint32_t slots = 0;
  uint32_t words = 0;
  uint32_t relist_at = 0;
  uint64_t reciprocal = 0;  // slot = offset * reciprocal >> 44
  Atomic<int64_t> free_slots{0};
  // Under the class lock:
  bool live = false;
  bool listed = false;
  uint32_t next_word = 0;
  Span* previous = nullptr;
  Span* next = nullptr;
  Atomic<uint64_t>* used = nullptr;  // words
  uint64_t* touched = nullptr;       // words
};

struct SmallObject {
  void* address = nullptr;
  bool zeroed = false;
};

class Slabs {
 public:
  Slabs(region::NativeMemory& memory, region::RegionMap& regions, RangeAllocator& ranges, PageMap& pages);
  ~Slabs();
  Status start();

  uint64_t object_bytes_max() const { return pages_.unit_bytes(); }
  // `bytes` and `alignment` are at most object_bytes_max().
  SmallObject allocate(uint64_t bytes, uint64_t alignment);
  void free(Span& span, uintptr_t address);
  uint64_t usable_bytes(const Span& span) const { return class_bytes(span.size_class); }
  // `address` is the first byte of one of the span's slots, and the slot is not free.
  bool is_object(const Span& span, uintptr_t address) const;

  // This thread's runs go back, as at its end. Another allocation takes new ones.
  void end_thread();
  void lock_for_fork();
  void unlock_after_fork();
  // Only while no other operation runs.
  void check_invariants();

 private:
  // Slots of one bitmap word that belong to this thread: free to hand out.
  struct Run {
    Span* span = nullptr;
    uint32_t word = 0;
    uint64_t free = 0;
    uint64_t zeroed = 0;  // of them, never touched
  };
  struct ThreadRuns {
    Slabs* owner = nullptr;
    ThreadRuns* next_free = nullptr;
    Run runs[kSizeClassesMax];
  };
  struct SizeClass {
    std::mutex mutex;
    Span* first = nullptr;        // spans with free slots
    Span* spare_spans = nullptr;  // descriptors of spans given back; only ever reused for this class
  };

  uint64_t span_bytes() const { return 4 * pages_.unit_bytes(); }
  ThreadRuns* thread_runs();
  bool refill(Run& run, unsigned index);
  void claim(Run& run, Span& span);
  Span* new_span(unsigned index);
  Span* new_descriptor(unsigned index);
  bool place(Span& span);
  void release(SizeClass& size_class, Span& span);
  void give_back(Span& span, uint32_t word, uint64_t bits);
  void list(SizeClass& size_class, Span& span);
  void unlist(SizeClass& size_class, Span& span);
  void end_thread(ThreadRuns* runs);
  static void thread_ended(void* runs);

  region::NativeMemory& memory_;
  region::RegionMap& regions_;
  RangeAllocator& ranges_;
  PageMap& pages_;
  pthread_key_t key_{};
  bool key_made_ = false;
  SizeClass classes_[kSizeClassesMax];
  std::mutex runs_mutex_;
  ThreadRuns* free_runs_ = nullptr;
};

}  // namespace spw::heap
