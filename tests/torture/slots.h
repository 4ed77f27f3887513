// The ranges of addresses that operations work in, by number, since addresses differ from run to run.
//
// Far slots lie at addresses of their own, away from where the kernel chooses addresses: nothing else comes into
// their holes. Reserved ones were reserved without access at the start, at an address that the kernel chose; a hole
// in one is filled again before the operation that made it ends. Dynamic ones are mapped and unmapped as a whole (and
// have holes as reserved ones do). Heap ones come from malloc and its kin.
//
// Each page has a mark, 0 where nothing is mapped. Neighbours with the same mark came from one call and had
// everything done to them together since, so they are one mapping in whatever way the kernel cuts and joins its own.
//
// A slot belongs to a group. Threads work on one group each, and what belongs to different groups shares nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "random.h"

namespace torture {

inline constexpr size_t kPage = 4096;
inline constexpr uint32_t kSlotPages = 8192;
inline constexpr unsigned kGroups = 3;
inline constexpr unsigned kFar = 6, kReserved = 6, kDynamic = 9, kHeap = 9;
inline constexpr unsigned kSlots = kFar + kReserved + kDynamic + kHeap;
inline constexpr unsigned kAllGroups = (1u << kGroups) - 1;

enum class Kind : uint8_t { kFar, kReserved, kDynamic, kHeap };
enum Kinds : unsigned {
  kOfFar = 1,
  kOfReserved = 2,
  kOfDynamic = 4,
  kOfHeap = 8,
  kOfMapped = 7,
  kOfAll = 15
};

// Whose a slot's addresses are under Spillway, whatever was mapped over parts of them since: the kernel's, or managed,
// as memory or (of recompiled programs) as a file. kEither: it depends on what the program had before.
enum class Backing : uint8_t { kKernels, kMemory, kFile, kEither };

struct Slot {
  char* base;
  uint32_t pages;  // 0: an empty slot
  unsigned number;
  unsigned group;
  Kind kind;
  Backing backing;
  bool is_unreadable;  // some of it may have been given rights to store or execute, but not to read
  size_t heap_bytes;
  char* heap;  // what malloc returned; base is the first whole page in it
  uint64_t marks[kSlotPages];

  bool is_near() const { return kind == Kind::kReserved || kind == Kind::kDynamic; }
  bool may_be_managed() const { return backing != Backing::kKernels; }
  bool may_be_managed_file() const { return backing == Backing::kFile || backing == Backing::kEither; }
  char* at(uint32_t page) const { return base + page * kPage; }
};

struct Range {
  Slot* slot;
  uint32_t page;
  uint32_t pages;

  char* begin() const { return slot->at(page); }
  size_t bytes() const { return pages * kPage; }
};

extern Slot slots[kSlots];

void note_rights(Slot& slot, int protection);

void set_up_slots();
// Every page of the range: something was done to its mapping.
void remark(const Range& range, uint64_t by);
// Something new is mapped there, or, with 0, nothing.
void mark(const Range& range, uint64_t with);
// The run of pages with one mark around `page`; of no more than `pages_max`, and from `page` on only.
uint32_t run_from(const Slot& slot, uint32_t page, uint32_t pages_max);
// Any slot of one of the kinds and groups that is not empty; null if a few tries found none.
Slot* choose_slot(Random& random, unsigned kinds, unsigned groups);
Slot* choose_empty_slot(Random& random, Kind kind, unsigned groups);
Range choose_range(Random& random, Slot& slot, uint32_t pages_max);
// Whether the bytes overlap what a slot of the groups other than `except` has. (Other threads' slots change
// meanwhile.)
bool overlaps_a_slot(const char* begin, size_t bytes, unsigned groups, const Slot* except);

}  // namespace torture
