// malloc and its kin, beside the mappings.
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "operations.h"

namespace torture {

namespace {

constexpr size_t kHeapBytesMax = 8u << 20;

size_t choose_size(Random& random) {
  const uint64_t kind = random.below(100);
  if (kind < 20) return 8192 + random.below(60000);
  if (kind < 80) return 65536 + random.below(1 << 20);
  return 65536 + random.below(kHeapBytesMax - 65536);
}

// A word now and then, and the last bytes.
uint64_t sum_of(const char* at, size_t bytes) {
  uint64_t sum = bytes;
  for (size_t offset = 0; offset + 8 <= bytes; offset += 1000) {
    uint64_t word = 0;
    std::memcpy(&word, at + offset, sizeof word);
    sum = mixed(sum, word);
  }
  for (size_t offset = bytes - std::min<size_t>(bytes, 8); offset < bytes; ++offset)
    sum = mixed(sum, static_cast<unsigned char>(at[offset]));
  return sum;
}

void fill(char* at, size_t bytes, uint64_t value) {
  std::memset(at, static_cast<int>(value % 255 + 1), bytes);
}

void adopt(Context& context, Slot& slot, void* allocated, size_t bytes) {
  slot.heap = static_cast<char*>(allocated);
  slot.heap_bytes = bytes;
  const uintptr_t first = (reinterpret_cast<uintptr_t>(allocated) + kPage - 1) / kPage * kPage;
  slot.base = reinterpret_cast<char*>(first);
  // The number of whole pages depends on the address: one less than there may be.
  slot.pages = static_cast<uint32_t>((bytes - kPage) / kPage);
  mark({&slot, 0, slot.pages}, mixed(context.number) | 1);
}

void* allocated_by(Context& context, uint64_t which, size_t bytes, size_t alignment) {
  void* at = nullptr;
  switch (which) {
    case 0:
      return malloc(bytes);
    case 1:
      return calloc(bytes, 1);
    case 2:
      return calloc(1, bytes);
    case 3:
      context.log->out("posix_memalign", posix_memalign(&at, alignment, bytes));
      return at;
    case 4:
      return aligned_alloc(alignment, bytes / alignment * alignment + alignment);
    case 5:
      return memalign(alignment, bytes);
    default:
      return valloc(bytes);
  }
}

void allocate(Context& context) {
  Random& random = context.random;
  Slot* slot = choose_empty_slot(random, Kind::kHeap, context.groups);
  if (slot == nullptr) return context.log->calls();
  const size_t bytes = choose_size(random);
  const uint64_t which = random.below(7);
  const size_t alignment = size_t{16} << random.below(12);
  context.log->in("slot", slot->number);
  context.log->in("bytes", static_cast<int64_t>(bytes));
  context.log->in("which", static_cast<int64_t>(which));
  context.log->in("alignment", static_cast<int64_t>(alignment));
  context.log->calls();
  void* at = allocated_by(context, which, bytes, alignment);
  if (at == nullptr) return context.log->word("null");
  const size_t promised = which < 3 ? 16 : which == 6 ? kPage : alignment;
  context.log->out("misaligned", static_cast<int64_t>(reinterpret_cast<uintptr_t>(at) % promised));
  context.log->out("usable", malloc_usable_size(at) >= bytes);
  context.log->out("overlaps", overlaps_a_slot(static_cast<char*>(at), bytes, context.groups, slot));
  if (which == 1 || which == 2) context.log->hex("zeros", sum_of(static_cast<char*>(at), bytes));
  fill(static_cast<char*>(at), bytes, random.next());
  adopt(context, *slot, at, bytes);
}

void reallocate(Context& context) {
  Slot* slot = choose_slot(context.random, kOfHeap, context.groups);
  if (slot == nullptr) return context.log->calls();
  const size_t before = slot->heap_bytes, bytes = choose_size(context.random);
  context.log->in("slot", slot->number);
  context.log->in("bytes", static_cast<int64_t>(bytes));
  context.log->calls();
  // Where pages lie in an allocation differs from run to run, and so does this sum.
  const uint64_t sum = sum_of(slot->heap, std::min(before, bytes));
  char* at = static_cast<char*>(realloc(slot->heap, bytes));
  if (at == nullptr) return context.log->word("null");
  context.log->out("overlaps", overlaps_a_slot(at, bytes, context.groups, slot));
  context.log->out("same", sum == sum_of(at, std::min(before, bytes)));
  fill(at, bytes, context.random.next());
  adopt(context, *slot, at, bytes);
}

void release(Context& context) {
  Slot* slot = choose_slot(context.random, kOfHeap, context.groups);
  if (slot == nullptr) return context.log->calls();
  context.log->in("slot", slot->number);
  context.log->calls();
  free(slot->heap);
  slot->pages = 0;
}

// Rights that are taken for a while.
void protect_heap(Context& context) {
  Slot* slot = choose_slot(context.random, kOfHeap, context.groups);
  if (slot == nullptr) return context.log->calls();
  const Range range = choose_range(context.random, *slot, kSlotPages);
  log_range(context, range);
  const int protection = context.random.percent(50) ? PROT_NONE : PROT_READ;
  context.log->in("protection", protection);
  context.log->calls();
  if (!may_change_rights(*slot)) return context.log->word("left_out");
  context.log->result("mprotect", mprotect(range.begin(), range.bytes(), protection));
  probe_range(context, {slot, range.page, std::min(range.pages, 16u)});
  context.log->result("again", mprotect(range.begin(), range.bytes(), PROT_READ | PROT_WRITE));
  remark(range, context.number);
}

}  // namespace

const Operation heap_operations[] = {
    {"allocate", 24, allocate, false}, {"reallocate", 6, reallocate, false},
    {"release", 14, release, false},   {"protect_heap", 8, protect_heap, false},
    {nullptr, 0, nullptr, false},
};

}  // namespace torture
