// What a program has of a range of managed space: parts of mappings, and of objects of malloc, which to a program that
// advises, protects or locks pages of them are mappings like others.
//
// Threads: any; a range that others map or unmap meanwhile is seen in part, as with the kernel.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/units.h"
#include "libc/managed.h"
#include "region/region_map.h"

namespace spw::libc {

struct Part {
  uintptr_t begin = 0, end = 0;
  region::Kind kind = region::Kind::kNone;  // kNone: a hole
  bool is_object = false;                   // of malloc: kAnonymous
  bool is_hole() const { return kind == region::Kind::kNone; }
};

// The part that begins at `begin`, up to `end` at most; there is one, if only a hole. begin < end, multiples of a page.
Part part_at(const Context& c, uintptr_t begin, uintptr_t end);

// Calls visit(part) for what of [begin, end) is no hole; false from it ends the walk. Whether there was no hole, as far
// as it went.
template <class Visit>
bool for_each_part(const Context& c, uintptr_t begin, uintptr_t end, Visit visit) {
  bool is_whole = true;
  while (begin < end) {
    const Part part = part_at(c, begin, end);
    if (part.is_hole())
      is_whole = false;
    else if (!visit(part))
      break;
    begin = part.end;
  }
  return is_whole;
}

inline bool has_no_hole(const Context& c, uintptr_t begin, uintptr_t end) {
  return for_each_part(c, begin, end, [](const Part&) { return true; });
}

// An argument (address, bytes) of the calls of this family, in whole pages.
struct Pages {
  uintptr_t begin = 0, end = 0;
  bool is_valid = false;  // `begin` is at a page, and the end is not beyond all addresses
  bool is_empty() const { return begin == end; }
};
Pages pages_of(const void* address, size_t bytes);
// Those that hold any of the bytes, where the address may be within one.
Pages pages_around(const void* address, size_t bytes);
// Where the first hole of [begin, end) begins; `end`: there is none.
uintptr_t whole_until(const Context& c, uintptr_t begin, uintptr_t end);

// The whole blocks that hold [begin, end).
struct Blocks {
  uintptr_t begin = 0;
  uint64_t bytes = 0;
};
Blocks blocks_around(const Context& c, uintptr_t begin, uintptr_t end);

// Calls visit(begin, end) for the parts of [begin, end) that are live, in order: a mapping may go on behind its file's
// end. As they are at about this time.
template <class Visit>
void for_each_live(const Context& c, uintptr_t begin, uintptr_t end, Visit visit) {
  const uint64_t block = c.regions->block_bytes();
  const Blocks around = blocks_around(c, begin, end);
  const BlockId first((around.begin - SPW_MANAGED_BASE) / block);
  c.regions->for_each_live_run(first, around.bytes / block, [&](BlockId run, uint64_t count) {
    const uintptr_t live = SPW_MANAGED_BASE + run.value * block;
    visit(std::max(begin, live), std::min(end, live + count * block));
  });
}

inline void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }
// What the calls that map return where they fail.
void* no_map(int error);

// [begin, end), all of which is anonymous, reads as zeros, and takes no space. Whatever rights the program has there.
void make_zero(const Context& c, uintptr_t begin, uintptr_t end);

// How many of the bytes at `p` a system call may read, or store to (`is_store`): the kernel would have stopped, or
// failed with EFAULT, at the first behind them.
size_t reachable_bytes(const void* p, size_t bytes, bool is_store);

// Of a list of pieces, any of which may be managed, those up to the first byte that cannot be reached, the last one cut
// there.
struct Reached {
  size_t count = 0, bytes = 0;
  bool is_cut = false;
};
Reached reach(std::span<iovec> pieces, bool is_store);

}  // namespace spw::libc
