#include "store/compressed/object_pool.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/need.h"
#include "telemetry/counters.h"

namespace spw::store {

namespace {
// Forced ones, beyond the budget.
constexpr uint64_t kSpareSlabs = 256;
constexpr size_t kWordBits = 64;
}  // namespace

Result<std::unique_ptr<ObjectPool>> ObjectPool::create(PoolBudget& budget) {
  std::unique_ptr<ObjectPool> pool(new ObjectPool(budget));
  const uint64_t slabs = budget.bytes_max_ever / kSlabBytes + kSpareSlabs;
  SPW_CHECK(slabs << kObjectBits <= kPlaceEnd);
  pool->slabs_max_ = static_cast<uint32_t>(slabs);
  auto memory = platform::map_anonymous(slabs * kSlabBytes);
  auto slabs_memory = platform::map_anonymous(round_up(slabs * sizeof(Slab), kMmuPageBytes));
  auto pages =
      platform::map_anonymous(round_up(slabs * objects(kPageClass) * sizeof(uint64_t), kMmuPageBytes));
  for (const auto* const made : {&memory, &slabs_memory, &pages})
    if (!*made) return made->status();
  pool->memory_ = std::move(*memory);
  pool->slabs_memory_ = std::move(*slabs_memory);
  pool->pages_memory_ = std::move(*pages);
  // Huge pages would not be given back slab by slab.
  (void)platform::advise(pool->memory_.data(), pool->memory_.bytes(), platform::Advice::kNoHugePage);
  (void)platform::advise(pool->memory_.data(), pool->memory_.bytes(), platform::Advice::kDontDump);
  return pool;
}

ObjectPool::~ObjectPool() {
  uint64_t slabs = 0;
  for (uint32_t number = 0; number < begun_.load_relaxed(); ++number)
    slabs += slab(number).of_class.load_relaxed() != kNoClass;
  give_budget_back(slabs * kSlabBytes);
}

void ObjectPool::give_budget_back(uint64_t bytes) {
  budget_.bytes.fetch_sub_relaxed(bytes);
  telemetry::count(telemetry::Counter::compressed_memory_given_back, bytes);
}

std::optional<uint32_t> ObjectPool::new_slab(bool is_forced) {
  budget_.bytes.fetch_add_relaxed(kSlabBytes);
  if (!is_forced && !budget_.is_kept_to()) {
    budget_.bytes.fetch_sub_relaxed(kSlabBytes);
    return std::nullopt;
  }
  if (const uint64_t now = budget_.bytes.load_relaxed(); now > budget_.bytes_peak.load_relaxed())
    budget_.bytes_peak.store_relaxed(now);
  telemetry::count(telemetry::Counter::compressed_memory_taken, kSlabBytes);
  std::lock_guard lock(free_mutex_);
  if (first_free_ != kNone) {
    const uint32_t number = first_free_;
    first_free_ = slab(number).next;
    return number;
  }
  const uint32_t number = begun_.load_relaxed();
  if (number == slabs_max_) {
    if (is_forced) cannot_go_on("get memory for compressed pages", ENOMEM);
    give_budget_back(kSlabBytes);
    return std::nullopt;
  }
  new (&slab(number)) Slab;
  begun_.store_release(number + 1);
  return number;
}

void ObjectPool::link(Class& in, uint32_t number) {
  slab(number).previous = kNone;
  slab(number).next = in.first;
  if (in.first != kNone) slab(in.first).previous = number;
  in.first = number;
}

void ObjectPool::unlink(Class& from, uint32_t number) {
  Slab& one = slab(number);
  if (one.previous != kNone)
    slab(one.previous).next = one.next;
  else
    from.first = one.next;
  if (one.next != kNone) slab(one.next).previous = one.previous;
}

std::optional<ObjectPool::Place> ObjectPool::take(size_t bytes, uint64_t page, bool is_forced) {
  SPW_CHECK(bytes > 0 && (bytes <= kObjectBytesMax || bytes == kMmuPageBytes));
  const size_t of_class = bytes == kMmuPageBytes ? kPageClass : (bytes + kHeadBytes - 1) / kStepBytes;
  Class& from = classes_[of_class];
  std::lock_guard lock(from.mutex);
  if (from.first == kNone) {
    const auto made = new_slab(is_forced);
    if (!made) return std::nullopt;
    slab(*made).of_class.store_release(static_cast<uint8_t>(of_class));
    link(from, *made);
  }
  const uint32_t number = from.first;
  Slab& one = slab(number);
  size_t word = 0;
  while (one.used[word] == UINT64_MAX) ++word;
  const auto bit = static_cast<size_t>(std::countr_one(one.used[word]));
  const size_t at = word * kWordBits + bit;
  SPW_CHECK(at < objects(of_class));
  *page_of(number, at, of_class) = page;
  one.used[word] |= uint64_t{1} << bit;
  if (++one.count == objects(of_class)) unlink(from, number);
  return Place{number} << kObjectBits | at;
}

void ObjectPool::give_back(Place place) {
  const auto number = static_cast<uint32_t>(place >> kObjectBits);
  const size_t at = place % kObjectsMax;
  Slab& one = slab(number);
  const size_t of_class = one.of_class.load_relaxed();
  Class& to = classes_[of_class];
  std::lock_guard lock(to.mutex);
  uint64_t& used = one.used[at / kWordBits];
  const uint64_t bit = uint64_t{1} << at % kWordBits;
  SPW_CHECK((used & bit) != 0);
  used &= ~bit;
  if (one.count-- == objects(of_class)) link(to, number);
  if (one.count > 0) return;
  unlink(to, number);
  one.of_class.store_relaxed(kNoClass);
  release(number);
}

void ObjectPool::release(uint32_t number) {
  (void)platform::advise(memory_.data() + number * kSlabBytes, kSlabBytes, platform::Advice::kDontNeed);
  give_budget_back(kSlabBytes);
  std::lock_guard lock(free_mutex_);
  slab(number).next = first_free_;
  first_free_ = number;
}

std::byte* ObjectPool::contents(Place place) const {
  const auto number = static_cast<uint32_t>(place >> kObjectBits);
  const size_t of_class = slab(number).of_class.load_relaxed();
  std::byte* const there = object(number, place % kObjectsMax, of_class);
  return of_class == kPageClass ? there : there + kHeadBytes;
}

// Whole pages have no room for a head: theirs are beside.
uint64_t* ObjectPool::page_of(uint32_t number, size_t at, size_t of_class) const {
  return of_class == kPageClass
             ? reinterpret_cast<uint64_t*>(pages_memory_.data()) + number * objects(kPageClass) + at
             : reinterpret_cast<uint64_t*>(object(number, at, of_class));
}

std::optional<ObjectPool::Found> ObjectPool::next(size_t most) {
  const uint32_t slabs = begun_.load_acquire();
  for (size_t looked = 0; slabs > 0 && looked < most; ++looked) {
    if (hand_slab_ >= slabs) hand_slab_ = 0;
    const size_t of_class = slab(hand_slab_).of_class.load_acquire();
    if (of_class == kNoClass || hand_object_ >= objects(of_class)) {
      hand_object_ = 0;
      ++hand_slab_;
      continue;
    }
    const size_t at = hand_object_++;
    std::lock_guard lock(classes_[of_class].mutex);
    const Slab& one = slab(hand_slab_);
    if (one.of_class.load_relaxed() == of_class && (one.used[at / kWordBits] >> at % kWordBits & 1) != 0)
      return Found{Place{hand_slab_} << kObjectBits | at, *page_of(hand_slab_, at, of_class)};
  }
  return std::nullopt;
}

void ObjectPool::lock_for_fork() {
  for (Class& each : classes_) each.mutex.lock();
  free_mutex_.lock();
}

void ObjectPool::unlock_after_fork() {
  free_mutex_.unlock();
  for (Class& each : classes_) each.mutex.unlock();
}

void ObjectPool::check_invariants() {
  uint64_t slabs = 0;
  for (uint32_t number = 0; number < begun_.load_acquire(); ++number) {
    Slab& one = slab(number);
    const size_t of_class = one.of_class.load_acquire();
    if (of_class == kNoClass) continue;
    std::lock_guard lock(classes_[of_class].mutex);
    ++slabs;
    uint32_t used = 0;
    for (const uint64_t word : one.used) used += static_cast<uint32_t>(std::popcount(word));
    SPW_CHECK(used == one.count && used > 0 && used <= objects(of_class));
  }
  SPW_CHECK(slabs * kSlabBytes <= budget_.bytes.load_relaxed());
}

}  // namespace spw::store
