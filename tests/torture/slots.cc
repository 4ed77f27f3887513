#include "slots.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace torture {

Slot slots[kSlots];

namespace {

// Below all that the kernel places from the top down, above what programs are linked to, and not where Spillway's own
// space is (`spillway doctor`), of which a program that chooses addresses itself has to keep clear.
constexpr uintptr_t kFarBase = 0x380000000000u;
constexpr uintptr_t kFarStride = 4 * kSlotPages * kPage;

Kind kind_of(unsigned number) {
  if (number < kFar) return Kind::kFar;
  if (number < kFar + kReserved) return Kind::kReserved;
  return number < kFar + kReserved + kDynamic ? Kind::kDynamic : Kind::kHeap;
}

}  // namespace

void set_up_slots() {
  for (unsigned number = 0; number < kSlots; ++number) {
    Slot& slot = slots[number];
    slot.number = number;
    slot.group = number % kGroups;
    slot.kind = kind_of(number);
    slot.backing = slot.kind == Kind::kHeap ? Backing::kEither : Backing::kKernels;
    if (slot.kind == Kind::kFar) {
      slot.base = reinterpret_cast<char*>(kFarBase + number * kFarStride);
      slot.pages = kSlotPages;
    } else if (slot.kind == Kind::kReserved) {
      void* at =
          mmap(nullptr, kSlotPages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (at == MAP_FAILED) {
        std::perror("mmtorture: reserving a slot");
        std::exit(98);
      }
      slot.base = static_cast<char*>(at);
      slot.pages = kSlotPages;
      mark({&slot, 0, kSlotPages}, mixed(number));
    }
  }
}

void note_rights(Slot& slot, int protection) {
  if (protection != PROT_NONE && (protection & PROT_READ) == 0) slot.is_unreadable = true;
}

void remark(const Range& range, uint64_t by) {
  for (uint32_t page = range.page; page < range.page + range.pages; ++page) {
    uint64_t& mark = range.slot->marks[page];
    if (mark != 0) mark = mixed(mark, by) | 1;
  }
}

void mark(const Range& range, uint64_t with) {
  std::fill_n(range.slot->marks + range.page, range.pages, with);
}

uint32_t run_from(const Slot& slot, uint32_t page, uint32_t pages_max) {
  const uint32_t end = std::min<uint64_t>(slot.pages, static_cast<uint64_t>(page) + pages_max);
  uint32_t at = page;
  while (at < end && slot.marks[at] == slot.marks[page]) ++at;
  return at - page;
}

Slot* choose_slot(Random& random, unsigned kinds, unsigned groups) {
  for (int tries = 0; tries < 24; ++tries) {
    Slot& slot = slots[random.below(kSlots)];
    if (slot.pages == 0 || (kinds >> static_cast<unsigned>(slot.kind) & 1) == 0 ||
        (groups >> slot.group & 1) == 0)
      continue;
    return &slot;
  }
  return nullptr;
}

Slot* choose_empty_slot(Random& random, Kind kind, unsigned groups) {
  for (int tries = 0; tries < 24; ++tries) {
    Slot& slot = slots[random.below(kSlots)];
    if (slot.pages == 0 && slot.kind == kind && (groups >> slot.group & 1) != 0) return &slot;
  }
  return nullptr;
}

Range choose_range(Random& random, Slot& slot, uint32_t pages_max) {
  // Most are short and many near the start of the slot, so that they meet each other's pages.
  const uint64_t kind = random.below(100);
  uint32_t pages = 1;
  if (kind >= 50) pages = 2 + static_cast<uint32_t>(random.below(7));
  if (kind >= 80) pages = 8 + static_cast<uint32_t>(random.below(57));
  if (kind >= 95) pages = 64 + static_cast<uint32_t>(random.below(961));
  if (kind >= 99 && random.percent(30)) pages = kSlotPages;
  pages = std::min({pages, pages_max, slot.pages});
  const uint32_t places = slot.pages - pages + 1;
  const uint32_t page =
      static_cast<uint32_t>(random.below(random.percent(60) ? std::min(places, 96u) : places));
  return {&slot, page, pages};
}

bool overlaps_a_slot(const char* begin, size_t bytes, unsigned groups, const Slot* except) {
  for (const Slot& slot : slots) {
    if (&slot == except || slot.pages == 0 || (groups >> slot.group & 1) == 0) continue;
    if (begin < slot.at(slot.pages) && slot.base < begin + bytes) return true;
  }
  return false;
}

}  // namespace torture
