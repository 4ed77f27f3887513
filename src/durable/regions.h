// The persistent regions of a process, and what its threads do in them:
// sections that begin and end with calls or with locks, and stores.
//
// A thread's section begins with its outermost begin() or acquired lock, and ends when as many ends and releases have
// followed (locks may be released in any order). In a region it takes part from its first store there, or from the
// first lock it takes that hands on what an unfinished section has stored. A section is atomic in each region; not
// across regions, each of which has its own log.
//
// Threads: each has a Thread of its own, and gives it with every
// call. Regions are added and removed while nobody is in a section.
// Limits: kRegionsMax.
#pragma once

#include <array>
#include <mutex>

#include "durable/lock_order.h"
#include "durable/persistent_region.h"

namespace spw::durable {

inline constexpr unsigned kRegionsMax = 8;

// Invariant: depth = begins + locks.size()
struct Thread {
  unsigned depth = 0;  // begins and locks that have not ended
  unsigned begins = 0;
  bool has_released = false;  // a lock, in the section that is open
  std::vector<const void*>
      locks;  // held, of those that this was told of; one that is held twice is there twice
  uint64_t stamp = 1;
  unsigned last = 0;  // the region of its last store
  struct Part {
    Slot* slot = nullptr;
    uint64_t region = 0;  // its serial: the slot is gone with it
  };
  std::array<Part, kRegionsMax> parts{};
};

class Regions {
 public:
  // EMFILE: there are kRegionsMax.
  Result<unsigned> add(std::unique_ptr<PersistentRegion> region);
  // EBUSY: a section is open in it. Threads keep no slot of it.
  Status remove(Thread& thread, unsigned region);
  PersistentRegion* region(unsigned number) const { return regions_[number].load_acquire(); }
  // kRegionsMax: it is in none.
  unsigned find(uintptr_t address) const;
  // Of the highest; 0: there is none. Not while one is added or removed.
  uintptr_t end_address() const;

  void begin(Thread& thread) {
    ++thread.depth;
    ++thread.begins;
  }
  // EPERM: none was begun by begin().
  Status end(Thread& thread);
  // The lock was just acquired; is about to be released, which means nothing for one that was acquired before there was
  // a region. After an error of acquired(), releasing() has to follow all the same.
  Status acquired(Thread& thread, const void* lock);
  Status releasing(Thread& thread, const void* lock);
  // The section's stores are put back, and it goes on until its end as if it had made none. EPERM: none is open. EBUSY:
  // it has released a lock, so others may have seen them.
  Status restore(Thread& thread);
  // EFAULT: not all of it is in one region's heap.
  Status before_store(Thread& thread, uintptr_t address, size_t bytes);

  Result<uint64_t> allocate(Thread& thread, unsigned region, uint64_t bytes);
  Status free(Thread& thread, uintptr_t address);
  Status set_root(Thread& thread, unsigned region, std::string_view name, uint64_t address);
  // What the thread stored outside of sections is durable, and so are its sections. EBUSY inside of one; ETIMEDOUT:
  // another thread's section that they depend on has not ended for kSyncWaitNsMax.
  Status sync(Thread& thread);
  // In a forked child, which has the regions' descriptors, too: the file would stay locked as long as it lives.
  void forked();
  // The thread ends. EBUSY: in a section, which will not become history.
  Status ended(Thread& thread);

 private:
  // Null: it has none.
  Slot* slot_of(const Thread& thread, unsigned region) const;
  // The thread's slot in a region, with a section open in it if the thread is in one.
  Result<Slot*> join(Thread& thread, unsigned region);
  Status end_sections(Thread& thread);
  Status end_one(Thread& thread);
  void hand_on(const Thread& thread, const void* lock);
  HandedOn unfinished(const Thread& thread) const;
  // Nobody has to depend on it any more.
  bool is_history(const HandedOn::Section& section) const;
  template <class Work>
  Status in_section(Thread& thread, unsigned region, Work work);

  std::mutex mutex_;  // adding and removing
  std::array<std::unique_ptr<PersistentRegion>, kRegionsMax> owned_;
  std::array<Atomic<PersistentRegion*>, kRegionsMax> regions_{};
  // What threads may look at that have nothing to do with a region,
  // which may be closed meanwhile. serial 0: none is open.
  struct Place {
    Atomic<uint64_t> serial{0}, base{0}, bytes{0};
  };
  std::array<Place, kRegionsMax> places_;
  Atomic<unsigned> count_{0};  // regions are below it
  LockOrder locks_;
};

}  // namespace spw::durable
