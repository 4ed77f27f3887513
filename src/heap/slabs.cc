#include "heap/slabs.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace spw::heap {

namespace {

constexpr unsigned kReciprocalShift = 44;

uint64_t valid_bits(const Span& span, uint32_t word) {
  uint32_t slots = std::min<uint32_t>(64, span.slots - word * 64);
  return ~uint64_t{0} >> (64 - slots);
}

uint32_t slot_of(const Span& span, uintptr_t address) {
  return static_cast<uint32_t>(((address - span.base) * span.reciprocal) >> kReciprocalShift);
}

}  // namespace

Slabs::Slabs(region::NativeMemory& memory, region::RegionMap& regions, RangeAllocator& ranges, PageMap& pages)
    : memory_(memory), regions_(regions), ranges_(ranges), pages_(pages) {}

Status Slabs::start() {
  if (int error = pthread_key_create(&key_, thread_ended))
    return Status(error, "cannot make a thread-specific key");
  key_made_ = true;
  return Status::ok();
}

Slabs::~Slabs() {
  if (key_made_) pthread_key_delete(key_);
}

Slabs::ThreadRuns* Slabs::thread_runs() {
  if (void* runs = pthread_getspecific(key_)) return static_cast<ThreadRuns*>(runs);
  std::lock_guard lock(runs_mutex_);
  ThreadRuns* runs = free_runs_;
  if (runs != nullptr) {
    free_runs_ = runs->next_free;
  } else {
    void* memory = memory_.take(sizeof(ThreadRuns));
    if (memory == nullptr) return nullptr;
    runs = new (memory) ThreadRuns;
    runs->owner = this;
  }
  if (pthread_setspecific(key_, runs) == 0) return runs;
  runs->next_free = free_runs_;
  free_runs_ = runs;
  return nullptr;
}

SmallObject Slabs::allocate(uint64_t bytes, uint64_t alignment) {
  unsigned index = alignment <= 16 ? class_of(bytes) : class_of_aligned(bytes, alignment);
  ThreadRuns* runs = thread_runs();
  if (runs == nullptr) return {};
  Run& run = runs->runs[index];
  if (run.free == 0 && !refill(run, index)) return {};
  uint64_t bit = run.free & -run.free;
  run.free ^= bit;
  uint64_t slot = uint64_t{run.word} * 64 + static_cast<uint64_t>(std::countr_zero(bit));
  bool zeroed = (run.zeroed & bit) != 0;
  run.zeroed &= ~bit;
  return {reinterpret_cast<void*>(run.span->base + slot * class_bytes(index)), zeroed};
}

bool Slabs::refill(Run& run, unsigned index) {
  SizeClass& size_class = classes_[index];
  {
    std::lock_guard lock(size_class.mutex);
    if (Span* span = size_class.first) {
      claim(run, *span);
      if (run.free != 0) return true;
    }
  }
  // Outside the lock: taking a span may discard and cancel holes.
  Span* span = new_span(index);
  if (span == nullptr) return false;
  std::lock_guard lock(size_class.mutex);
  list(size_class, *span);
  claim(run, *span);
  return true;
}

// Takes the free slots of the next word that has any; the caller holds the class lock and `span` is listed.
void Slabs::claim(Run& run, Span& span) {
  for (uint32_t i = 0; i < span.words; ++i) {
    uint32_t word = span.next_word;
    uint64_t valid = valid_bits(span, word);
    uint64_t free = valid & ~span.used[word].load_relaxed();
    if (free != 0) {
      // Only claims set bits and claims hold the lock: `free` can only have grown.
      free = valid & ~span.used[word].fetch_or_acq_rel(valid);
      run.span = &span;
      run.word = word;
      run.free = free;
      run.zeroed = free & ~span.touched[word];
      span.touched[word] |= free;
      int64_t left = span.free_slots.fetch_sub_acq_rel(std::popcount(free)) - std::popcount(free);
      if (left <= 0) unlist(classes_[span.size_class], span);
      return;
    }
    span.next_word = word + 1 == span.words ? 0 : word + 1;
  }
  unlist(classes_[span.size_class], span);
}

void Slabs::free(Span& span, uintptr_t address) {
  uint32_t slot = slot_of(span, address);
  SPW_CHECK(span.base + slot * class_bytes(span.size_class) ==
            address);  // free() of what malloc never returned
  uint32_t word = slot / 64;
  uint64_t bit = uint64_t{1} << (slot % 64);
  if (void* specific = pthread_getspecific(key_)) {
    Run& run = static_cast<ThreadRuns*>(specific)->runs[span.size_class];
    if (run.span == &span && run.word == word) {
      SPW_CHECK((run.free & bit) == 0);  // freed twice
      run.free |= bit;
      return;
    }
  }
  give_back(span, word, bit);
}

void Slabs::give_back(Span& span, uint32_t word, uint64_t bits) {
  uint64_t was = span.used[word].fetch_and_acq_rel(~bits);
  SPW_CHECK((was & bits) == bits);  // freed twice
  // From here on others may claim, empty and release the span. Its descriptor stays one of this class for good.
  int64_t freed = std::popcount(bits);
  int64_t now = span.free_slots.fetch_add_acq_rel(freed) + freed;
  bool relist = now >= span.relist_at && now - freed < span.relist_at;
  if (!relist && now != span.slots) return;
  SizeClass& size_class = classes_[span.size_class];
  std::lock_guard lock(size_class.mutex);
  // Whatever span the descriptor stands for by now, what follows is right for that one.
  if (!span.live) return;
  int64_t free = span.free_slots.load_acquire();
  if (!span.listed && free >= span.relist_at) list(size_class, span);
  // The last span with room is kept, so that a class that hovers around empty does not take and give back spans.
  bool only_one = size_class.first == &span && span.next == nullptr;
  if (free == span.slots && span.listed && !only_one) release(size_class, span);
}

void Slabs::list(SizeClass& size_class, Span& span) {
  span.listed = true;
  span.previous = nullptr;
  span.next = size_class.first;
  if (span.next != nullptr) span.next->previous = &span;
  size_class.first = &span;
}

void Slabs::unlist(SizeClass& size_class, Span& span) {
  if (!span.listed) return;
  span.listed = false;
  if (span.previous != nullptr)
    span.previous->next = span.next;
  else
    size_class.first = span.next;
  if (span.next != nullptr) span.next->previous = span.previous;
  span.previous = span.next = nullptr;
}

Span* Slabs::new_descriptor(unsigned index) {
  {
    std::lock_guard lock(classes_[index].mutex);
    if (Span* span = classes_[index].spare_spans) {
      classes_[index].spare_spans = span->next;
      span->next = nullptr;
      return span;
    }
  }
  uint64_t bytes = class_bytes(index);
  uint64_t slots = span_bytes() / bytes, words = (slots + 63) / 64;
  auto* memory = static_cast<std::byte*>(memory_.take(sizeof(Span) + 2 * words * sizeof(uint64_t)));
  if (memory == nullptr) return nullptr;
  auto* span = new (memory) Span;
  span->size_class = index;
  span->slots = static_cast<uint32_t>(slots);
  span->words = static_cast<uint32_t>(words);
  span->relist_at = static_cast<uint32_t>(std::max<uint64_t>(1, slots / 8));
  span->reciprocal = ((uint64_t{1} << kReciprocalShift) + bytes - 1) / bytes;
  span->used = reinterpret_cast<Atomic<uint64_t>*>(memory + sizeof(Span));
  span->touched = reinterpret_cast<uint64_t*>(memory + sizeof(Span) + words * sizeof(uint64_t));
  return span;
}

Span* Slabs::new_span(unsigned index) {
  Span* span = new_descriptor(index);
  if (span == nullptr || place(*span)) return span;
  std::lock_guard lock(classes_[index].mutex);
  span->next = classes_[index].spare_spans;
  classes_[index].spare_spans = span;
  return nullptr;
}

bool Slabs::place(Span& span) {
  uintptr_t base = ranges_.take(span_bytes(), pages_.unit_bytes());
  if (base == 0) return false;
  for (uint64_t at = 0; at < span_bytes(); at += pages_.unit_bytes()) {
    if (pages_.set_span(base + at, &span)) continue;
    for (uint64_t undo = 0; undo < at; undo += pages_.unit_bytes()) pages_.clear(base + undo);
    ranges_.give(base, span_bytes());
    return false;
  }
  regions_.add_anonymous(base, span_bytes());
  span.base = base;
  for (uint32_t word = 0; word < span.words; ++word) {
    span.used[word].store_relaxed(0);
    span.touched[word] = 0;
  }
  span.next_word = 0;
  span.free_slots.store_release(span.slots);
  span.live = true;
  return true;
}

void Slabs::release(SizeClass& size_class, Span& span) {
  unlist(size_class, span);
  span.live = false;
  for (uint64_t at = 0; at < span_bytes(); at += pages_.unit_bytes()) pages_.clear(span.base + at);
  regions_.remove(span.base, span_bytes());
  ranges_.give(span.base, span_bytes());
  span.next = size_class.spare_spans;
  size_class.spare_spans = &span;
}

bool Slabs::is_object(const Span& span, uintptr_t address) const {
  uint32_t slot = slot_of(span, address);
  return span.base + slot * class_bytes(span.size_class) == address &&
         (span.used[slot / 64].load_relaxed() >> (slot % 64) & 1) != 0;
}

void Slabs::end_thread(ThreadRuns* runs) {
  for (Run& run : runs->runs) {
    if (run.free != 0) give_back(*run.span, run.word, run.free);
    run = Run{};
  }
  std::lock_guard lock(runs_mutex_);
  runs->next_free = free_runs_;
  free_runs_ = runs;
}

void Slabs::thread_ended(void* runs) {
  auto* ended = static_cast<ThreadRuns*>(runs);
  ended->owner->end_thread(ended);
}

void Slabs::end_thread() {
  void* runs = pthread_getspecific(key_);
  if (runs == nullptr) return;
  pthread_setspecific(key_, nullptr);
  end_thread(static_cast<ThreadRuns*>(runs));
}

void Slabs::lock_for_fork() {
  runs_mutex_.lock();
  for (SizeClass& size_class : classes_) size_class.mutex.lock();
}

void Slabs::unlock_after_fork() {
  for (SizeClass& size_class : classes_) size_class.mutex.unlock();
  runs_mutex_.unlock();
}

void Slabs::check_invariants() {
  for (SizeClass& size_class : classes_) {
    std::lock_guard lock(size_class.mutex);
    const Span* previous = nullptr;
    for (Span* span = size_class.first; span != nullptr; previous = span, span = span->next) {
      SPW_CHECK(span->live && span->listed && span->previous == previous);
      SPW_CHECK(&classes_[span->size_class] == &size_class);
      int64_t free = 0;
      for (uint32_t word = 0; word < span->words; ++word)
        free += std::popcount(valid_bits(*span, word) & ~span->used[word].load_relaxed());
      SPW_CHECK(free == span->free_slots.load_relaxed() && free > 0);
      SPW_CHECK(pages_.find_span(span->base) == span);
      SPW_CHECK(regions_.kind_at(span->base) == region::Kind::kAnonymous);
    }
  }
}

}  // namespace spw::heap
