// Memory for what pages come to when they are compressed: objects of 1 to kObjectBytesMax bytes, and whole pages.
//
//     slab    kSlabBytes of memory, cut into objects of one class
//     class   objects of up to (class + 1) * kStepBytes with their heads; the last one: whole pages
//
// A slab is taken when no slab of a class has a free object, and given back to the kernel when all of its objects are
// free. So what the pool holds is its slabs; what their last objects leave is less than a twentieth.
// Each object says which page it is, for who looks through the slabs for pages to take out.
//
// Threads: any. Each class has a lock, and so do the slabs that are free; a class's is taken first. What next() says of
// an object was so a moment ago. An object's contents are its owner's matter.
// Around a fork: lock_for_fork(), so that the child finds no list half changed.
// Limits: `bytes_max` of memory in slabs, which is reserved (addresses only); not in core dumps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "base/atomic.h"
#include "base/status.h"
#include "base/units.h"
#include "platform/memory.h"
#include "platform/small_lock.h"

namespace spw::store {

// Who else takes of the memory that pools are in.
class SharesMemory {
 public:
  // What it leaves the pools at the moment. Called by any thread, often, with locks of theirs held.
  virtual uint64_t left_bytes() const = 0;

 protected:
  ~SharesMemory() = default;
};

// What all pools of a process may hold together now, and hold; and what they may ever be allowed.
struct PoolBudget {
  explicit PoolBudget(uint64_t most) : bytes_max_ever(most), bytes_max(most) {}
  // The budget may be there before the memory is.
  bool is_kept_to() const {
    const SharesMemory* const other = others.load_acquire();
    const uint64_t held = bytes.load_relaxed();
    return held <= bytes_max.load_relaxed() && (other == nullptr || held <= other->left_bytes());
  }
  const uint64_t bytes_max_ever;
  Atomic<uint64_t> bytes_max;
  Atomic<uint64_t> bytes{0};
  Atomic<uint64_t> bytes_peak{0};  // about
  Atomic<const SharesMemory*> others{nullptr};
};

class ObjectPool {
 public:
  using Place = uint64_t;  // below kPlaceEnd

  static constexpr uint64_t kSlabBytes = 1 << 16;
  static constexpr size_t kStepBytes = 64;
  static constexpr size_t kHeadBytes = sizeof(uint64_t);
  static constexpr size_t kObjectBytesMax = 3072 - kHeadBytes;
  // What objects of `bytes` take on the average, with their heads and half of what rounding to a class costs.
  static constexpr double kept_bytes_of(double bytes) {
    return bytes + kHeadBytes + static_cast<double>(kStepBytes) / 2;
  }
  static constexpr unsigned kPlaceBits = 42;
  static constexpr Place kPlaceEnd = Place{1} << kPlaceBits;

  // The budget outlives the pool.
  static Result<std::unique_ptr<ObjectPool>> create(PoolBudget& budget);
  ~ObjectPool();

  // Room for `bytes`: up to kObjectBytesMax, or a page. nullopt: the budget is used up; `is_forced` goes beyond it.
  std::optional<Place> take(size_t bytes, uint64_t page, bool is_forced = false);
  void give_back(Place place);
  std::byte* contents(Place place) const;

  // Whether another slab can be had.
  bool has_room(uint64_t bytes) const {
    return budget_.bytes.load_relaxed() + bytes <= budget_.bytes_max.load_relaxed();
  }
  const PoolBudget& budget() const { return budget_; }

  // Goes through all objects, round and round: the next one's place and page. nullopt: there is none in the next
  // `most` places. One caller at a time.
  struct Found {
    Place place;
    uint64_t page;
  };
  std::optional<Found> next(size_t most);

  void lock_for_fork();
  void unlock_after_fork();  // in the child, too
  void check_invariants();

 private:
  static constexpr unsigned kObjectBits = 10;  // of a place: in its slab
  static constexpr size_t kObjectsMax = kSlabBytes / kStepBytes;
  static constexpr size_t kClasses = (kObjectBytesMax + kHeadBytes) / kStepBytes + 1;
  static constexpr size_t kPageClass = kClasses - 1;
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint8_t kNoClass = UINT8_MAX;

  struct Slab {
    uint64_t used[kObjectsMax / 64] = {};     // bits
    uint32_t count = 0;                       // of them
    uint32_t previous = kNone, next = kNone;  // with free objects, of its class; or free
    Atomic<uint8_t> of_class{kNoClass};       // changed under its class's lock
  };
  struct Class {
    platform::SmallLock mutex;
    uint32_t first = kNone;  // slab with free objects
  };

  explicit ObjectPool(PoolBudget& budget) : budget_(budget) {}
  Slab& slab(uint32_t number) const { return reinterpret_cast<Slab*>(slabs_memory_.data())[number]; }
  static size_t object_bytes(size_t of_class) {
    return of_class == kPageClass ? kMmuPageBytes : (of_class + 1) * kStepBytes;
  }
  static size_t objects(size_t of_class) { return kSlabBytes / object_bytes(of_class); }
  std::byte* object(uint32_t number, size_t at, size_t of_class) const {
    return memory_.data() + number * kSlabBytes + at * object_bytes(of_class);
  }
  uint64_t* page_of(uint32_t number, size_t at, size_t of_class) const;
  void give_budget_back(uint64_t bytes);
  std::optional<uint32_t> new_slab(bool is_forced);
  void link(Class& in, uint32_t number);
  void unlink(Class& from, uint32_t number);
  void release(uint32_t number);

  PoolBudget& budget_;
  platform::Mapping memory_;
  platform::Mapping slabs_memory_;
  platform::Mapping pages_memory_;  // of objects that are whole pages: they have no heads
  uint32_t slabs_max_ = 0;
  std::array<Class, kClasses> classes_;
  platform::SmallLock free_mutex_;
  uint32_t first_free_ = kNone;  // by `next`
  Atomic<uint32_t> begun_{0};    // slabs that were ever taken
  uint32_t hand_slab_ = 0;
  size_t hand_object_ = 0;
};

}  // namespace spw::store
