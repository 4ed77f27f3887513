// mremap: of ranges that are one mapping, since where the kernel joins mappings is not said.
#include <algorithm>
#include <cstring>

#include "operations.h"

namespace torture {

namespace {

// A run of one mapping, of at most `pages_max` pages; a slot of null if there was none.
Range choose_run(Context& context, unsigned kinds, uint32_t pages_max) {
  Slot* slot = choose_slot(context.random, kinds, context.groups);
  if (slot == nullptr || (slot->is_near() && !context.alone)) return {nullptr, 0, 0};
  Range range = choose_range(context.random, *slot, pages_max);
  if (slot->marks[range.page] == 0) return {nullptr, 0, 0};
  range.pages = run_from(*slot, range.page, range.pages);
  log_range(context, range);
  return range;
}

void leave_hole(Context& context, const Range& hole) {
  mark(hole, 0);
  if (hole.slot->is_near()) plug(context, hole);
}

// Whether the kernel's memory, or what may be a mapped file, is not to come to managed addresses; and whether a part
// of a file is not to leave its own.
bool may_move_to(const Slot& from, const Slot& to) {
  static const bool is_allowed = allowed("move_into_managed");
  return is_allowed || !to.may_be_managed() ||
         (from.backing == Backing::kMemory && to.backing == Backing::kMemory);
}
bool may_move_from(const Slot& slot) {
  static const bool is_allowed = allowed("move_managed_file");
  return (is_allowed || !slot.may_be_managed_file()) && may_leave_hole(slot);
}

void shrink(Context& context) {
  const Range range = choose_run(context, kOfMapped, kSlotPages);
  if (range.slot == nullptr || range.pages < 2 || !may_leave_hole(*range.slot)) return context.log->calls();
  const uint32_t kept = 1 + static_cast<uint32_t>(context.random.below(range.pages - 1));
  const bool may_move = context.random.percent(50);
  context.log->in("kept", kept);
  context.log->calls();
  void* at = mremap(range.begin(), range.bytes(), kept * kPage, may_move ? MREMAP_MAYMOVE : 0);
  context.log->result("offset", at == MAP_FAILED ? -1 : static_cast<char*>(at) - range.begin());
  if (at != MAP_FAILED) leave_hole(context, {range.slot, range.page + kept, range.pages - kept});
}

// In far slots it depends on what is behind; in others something always is.
void grow_in_place(Context& context) {
  const Range range = choose_run(context, kOfFar | kOfReserved, 256);
  if (range.slot == nullptr) return context.log->calls();
  const uint32_t more = 1 + static_cast<uint32_t>(context.random.below(32));
  context.log->in("more", more);
  context.log->calls();
  Slot& slot = *range.slot;
  if (range.page + range.pages + more > slot.pages) return;
  void* at = mremap(range.begin(), range.bytes(), range.bytes() + more * kPage, 0);
  context.log->result("offset", at == MAP_FAILED ? -1 : static_cast<char*>(at) - range.begin());
  if (at == MAP_FAILED) return;
  mark({&slot, range.page + range.pages, more}, slot.marks[range.page]);
  probe_range(context, {&slot, range.page + range.pages - 1, std::min(more + 1, 8u)});
}

// To an address that the kernel chooses, into an empty slot.
void move_away(Context& context) {
  const Range range = choose_run(context, kOfMapped, 1024);
  if (range.slot == nullptr) return context.log->calls();
  Slot* to = choose_empty_slot(context.random, Kind::kDynamic, 1u << range.slot->group);
  const uint32_t more = static_cast<uint32_t>(context.random.below(context.random.percent(50) ? 3 : 200)) + 1;
  context.log->in("to", to == nullptr ? -1 : static_cast<int>(to->number));
  context.log->in("more", more);
  context.log->calls();
  const uint32_t end = range.page + range.pages;
  // Where there is room behind, it may stay.
  if (to == nullptr || end == range.slot->pages || range.slot->marks[end] == 0) return;
  if (!may_move_from(*range.slot)) return context.log->word("left_out");
  const uint64_t of_range = range.slot->marks[range.page];
  void* at = mremap(range.begin(), range.bytes(), range.bytes() + more * kPage, MREMAP_MAYMOVE);
  context.log->result("stayed", at == MAP_FAILED ? -1 : at == range.begin());
  if (at == MAP_FAILED || at == range.begin()) return;
  context.log->out("overlaps",
                   overlaps_a_slot(static_cast<char*>(at), range.bytes() + more * kPage, context.groups, to));
  to->base = static_cast<char*>(at);
  to->backing = range.slot->backing;
  to->is_unreadable = range.slot->is_unreadable;
  to->pages = range.pages + more;
  mark({to, 0, to->pages}, of_range);
  leave_hole(context, range);
  probe_range(context, {to, 0, std::min(to->pages, 16u)});
}

void move_to(Context& context) {
  const Range range = choose_run(context, kOfMapped, 1024);
  if (range.slot == nullptr) return context.log->calls();
  Slot* slot = choose_slot(context.random, kOfMapped, 1u << range.slot->group);
  if (slot == nullptr) return context.log->calls();
  static const bool keeps = allowed("dontunmap"), resizes = allowed("move_resized");
  const bool stays = keeps && context.random.percent(30);
  const uint32_t wanted = stays || !resizes || context.random.percent(60)
                              ? range.pages
                              : 1 + static_cast<uint32_t>(context.random.below(range.pages + 16));
  Range to = choose_range(context.random, *slot, wanted);
  context.log->in("to", slot->number);
  context.log->in("to_page", to.page);
  context.log->in("to_pages", wanted);
  context.log->in("stays", stays);
  context.log->calls();
  if (to.page + wanted > slot->pages) return;
  to.pages = wanted;
  // A shrinking move may have unmapped the rest, whatever happens then; where both meet, nothing moves.
  const bool meet =
      slot == range.slot && to.page < range.page + range.pages && range.page < to.page + to.pages;
  if (meet && wanted != range.pages) return;
  if (!may_move_to(*range.slot, *slot) || !may_move_from(*range.slot)) return context.log->word("left_out");
  const uint64_t of_range = range.slot->marks[range.page];
  const int flags = MREMAP_MAYMOVE | MREMAP_FIXED | (stays ? MREMAP_DONTUNMAP : 0);
  void* at = mremap(range.begin(), range.bytes(), to.bytes(), flags, to.begin());
  context.log->result("offset", at == MAP_FAILED ? -1 : static_cast<char*>(at) - to.begin());
  if (at == MAP_FAILED) return;
  if (stays) {
    remark(range, context.number);
  } else {
    leave_hole(context, range);
  }
  mark(to, of_range);
  slot->is_unreadable |= range.slot->is_unreadable;
  probe_range(context, {slot, to.page, std::min(to.pages, 16u)});
  if (stays) probe_range(context, {range.slot, range.page, std::min(range.pages, 16u)});
}

// An old size of nothing makes another mapping of the same shared memory.
void move_shared_again(Context& context) {
  const Range range = choose_run(context, kOfMapped, 64);
  if (range.slot == nullptr) return context.log->calls();
  Slot* slot = choose_slot(context.random, kOfMapped, 1u << range.slot->group);
  if (slot == nullptr) return context.log->calls();
  const Range to = choose_range(context.random, *slot, range.pages);
  context.log->in("to", slot->number);
  context.log->in("to_page", to.page);
  context.log->in("to_pages", to.pages);
  context.log->calls();
  if (!may_move_to(*range.slot, *slot)) return context.log->word("left_out");
  void* at = mremap(range.begin(), 0, to.bytes(), MREMAP_MAYMOVE | MREMAP_FIXED, to.begin());
  context.log->result("offset", at == MAP_FAILED ? -1 : static_cast<char*>(at) - to.begin());
  if (at != MAP_FAILED) mark(to, mixed(context.number) | 1);
}

void remap_wrong(Context& context) {
  Random& random = context.random;
  const Range range = choose_run(context, kOfMapped, 16);
  if (range.slot == nullptr) return context.log->calls();
  const uint64_t which = random.below(6);
  context.log->in("which", static_cast<int64_t>(which));
  context.log->calls();
  char* at = range.begin();
  const size_t bytes = range.bytes();
  void* moved = nullptr;
  switch (which) {
    case 0:
      moved = mremap(at + 8, bytes, bytes, MREMAP_MAYMOVE);
      break;
    case 1:
      moved = mremap(at, bytes, 0, MREMAP_MAYMOVE);
      break;
    case 2:
      moved = mremap(at, bytes, bytes, MREMAP_FIXED, at);
      break;
    case 3:
      moved = mremap(at, bytes, bytes, 64);
      break;
    case 4:
      moved = mremap(at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at + 8);
      break;
    default:
      moved = mremap(at, bytes, bytes + kPage, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
      break;
  }
  context.log->result("call", moved == MAP_FAILED ? -1 : 0);
}

}  // namespace

const Operation remap_operations[] = {
    {"shrink", 8, shrink, false},
    {"grow_in_place", 12, grow_in_place, false},
    {"move_away", 12, move_away, false},
    {"move_to", 24, move_to, false},
    {"move_shared_again", 4, move_shared_again, false},
    {"remap_wrong", 3, remap_wrong, false},
    {nullptr, 0, nullptr, false},
};

}  // namespace torture
