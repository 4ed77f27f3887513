// mremap() of managed memory. Contents are copied, and what is zero is not, so that a reservation that was used a
// little stays small.
#include <errno.h>

#include <algorithm>
#include <vector>

#include "base/zeros.h"
#include "libc/entry.h"
#include "libc/io/bounce.h"
#include "libc/io/descriptors.h"
#include "libc/map/mapped_files.h"
#include "libc/map/mapped_reads.h"
#include "libc/map/mapping.h"
#include "libc/map/marks.h"
#include "libc/map/parts.h"
#include "libc/map/rights.h"
#include "libc/real.h"

namespace spw::libc {

using heap::Mapping;
using region::Kind;

namespace {

constexpr int kKnownFlags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;

struct Move {
  uintptr_t from, to;  // to: 0 for anywhere
  uint64_t old_bytes, new_bytes;
  int flags;
  bool keeps_old() const { return (flags & MREMAP_DONTUNMAP) != 0; }
  bool is_fixed() const { return (flags & MREMAP_FIXED) != 0; }
  bool may_move() const { return (flags & MREMAP_MAYMOVE) != 0; }
};

// What the kernel refuses whatever is mapped.
bool is_valid(const Move& move) {
  const auto is_at_page = [](uintptr_t address) { return address % kMmuPageBytes == 0; };
  if ((move.flags & ~kKnownFlags) != 0 || !is_at_page(move.from)) return false;
  if (move.new_bytes == 0 || move.old_bytes == 0) return false;  // 0: another view of a shared mapping
  if ((move.is_fixed() || move.keeps_old()) && !move.may_move()) return false;
  if (move.keeps_old() && move.old_bytes != move.new_bytes) return false;
  if (!move.is_fixed()) return true;
  const bool is_apart = move.to + move.new_bytes <= move.from || move.from + move.old_bytes <= move.to;
  return is_at_page(move.to) && is_apart;
}

// To where there are zeros.
bool copy_contents(const Context& c, uintptr_t to, uintptr_t from, uint64_t bytes) {
  Bounce bounce(kBounceBytes, true);
  if (bounce.bytes() == 0) return false;
  UsualRightsFor here(c, from, from + bytes);
  const uint64_t block = std::min<uint64_t>(c.regions->block_bytes(), kBounceBytes);
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t piece = std::min<uint64_t>(bounce.bytes(), bytes - done);
    copy_bytes(bounce.data(), pointer(from + done), piece);
    for (uint64_t at = 0; at < piece; at += block) {
      const uint64_t part = std::min(block, piece - at);
      if (!is_all_zero(bounce.data() + at, part))
        copy_bytes(pointer(to + done + at), bounce.data() + at, part);
    }
    done += piece;
  }
  return true;
}

// Of the part of a new place that is new, too: the rights of what was last.
void move_rights(const Context& c, uintptr_t to, const Move& move) {
  const auto parts = rights_of(c, move.from, move.from + std::min(move.old_bytes, move.new_bytes));
  for (const RightsPart& part : parts) {
    const uintptr_t begin = to + (part.begin - move.from);
    const bool is_last = &part == &parts.back();
    const uintptr_t end = is_last ? to + move.new_bytes : to + (part.end - move.from);
    if (part.rights == kUsualRights) continue;
    if (is_managed(pointer(to)))
      (void)give_rights(c, begin, end, part.rights);
    else
      (void)real().mprotect(pointer(begin), end - begin, part.rights);
  }
}

// Where there is nothing managed at `to`, memory of the kernel's is put there.
uintptr_t place_for(const Context& c, const Move& move) {
  if (!move.is_fixed()) return c.heap->mappings().map_anonymous(move.new_bytes);
  if (is_managed(pointer(move.to))) return make_anonymous(c, move.to, move.to + move.new_bytes) ? move.to : 0;
  const void* made = real().mmap(pointer(move.to), move.new_bytes, kUsualRights,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return made == MAP_FAILED ? 0 : move.to;
}

void* move_anonymous(const Context& c, const Move& move) {
  const uintptr_t to = place_for(c, move);
  if (to == 0) return no_map(ENOMEM);
  const uint64_t bytes = std::min(move.old_bytes, move.new_bytes);
  if (!copy_contents(c, to, move.from, bytes)) return no_map(ENOMEM);
  if (is_managed(pointer(to))) copy_marks(c, move.from, to, bytes);
  move_rights(c, to, move);
  if (move.keeps_old())
    make_zero(c, move.from, move.from + move.old_bytes);
  else
    (void)unmap(pointer(move.from), move.old_bytes);
  return pointer(to);
}

// Not the blocks move but what they stand for: changes of a shared file go there, those of a private one are copied.
void* move_file(const Context& c, const Move& move, Kind kind) {
  const uint64_t block = c.regions->block_bytes();
  if (move.is_fixed() || move.keeps_old() || move.from % block != 0 ||
      c.regions->kind_at(move.from) == Kind::kNone)
    return no_map(EINVAL);
  if (kind == Kind::kSharedFile &&
      !c.regions->flush(move.from, round_up(move.from + move.old_bytes, block) - move.from))
    return no_map(EIO);
  auto mapped = c.heap->mappings().map_file(move.new_bytes, c.regions->mapping_at(move.from));
  if (!mapped) return no_map(ENOMEM);
  if (kind == Kind::kPrivateFile) {
    const uintptr_t old_end = move.from + move.old_bytes;
    UsualRightsFor here(c, move.from, old_end);
    for_each_live(c, move.from, old_end, [&](uintptr_t begin, uintptr_t end) {
      copy_bytes(pointer(*mapped + (begin - move.from)), pointer(begin), end - begin);
    });
  }
  move_rights(c, *mapped, move);
  mapped_files().move(move.from, move.old_bytes, *mapped, move.new_bytes);
  remove_marks(c, move.from, move.from + move.old_bytes);
  give_usual_rights(c, move.from, move.from + move.old_bytes);
  c.heap->mappings().unmap(move.from, move.old_bytes);
  return pointer(*mapped);
}

// Where it is. Pages of the last block that were unmapped before come back as zeros.
bool grow_in_place(const Context& c, const Move& move, Kind kind) {
  const uintptr_t old_end = move.from + move.old_bytes, new_end = move.from + move.new_bytes;
  if (!c.heap->mappings().extend(move.from, move.old_bytes, move.new_bytes)) return false;
  const uintptr_t block_end = std::min<uintptr_t>(round_up(old_end, c.regions->block_bytes()), new_end);
  if (kind == Kind::kAnonymous && old_end < block_end) fill_bytes(pointer(old_end), 0, block_end - old_end);
  if (kind != Kind::kAnonymous) mapped_files().move(move.from, move.old_bytes, move.from, move.new_bytes);
  const int rights = rights_of(c, old_end - kMmuPageBytes, old_end).front().rights;
  if (rights != kUsualRights) (void)give_rights(c, old_end, new_end, rights);
  return true;
}

void* remap_managed(const Context& c, const Move& move) {
  const uintptr_t old_end = move.from + move.old_bytes;
  const Mapping from = c.heap->mappings().find(move.from, old_end);
  if (from.kind == Kind::kNone || from.address > move.from) return no_map(EFAULT);
  const bool moves = move.is_fixed() || move.keeps_old();
  if (move.new_bytes <= move.old_bytes && !moves) {
    const bool shrinks = move.new_bytes < move.old_bytes;
    if (shrinks && unmap(pointer(move.from + move.new_bytes), move.old_bytes - move.new_bytes) != 0)
      return MAP_FAILED;
    return pointer(move.from);
  }
  // The kernel's areas end where rights change, and one call is about one of them.
  const bool is_one = from.end() >= old_end && rights_of(c, move.from, old_end).size() == 1;
  if (!is_one && move.new_bytes > move.old_bytes) return no_map(EFAULT);
  if (from.end() < old_end) return no_map(EFAULT);
  if (!moves && grow_in_place(c, move, from.kind)) return pointer(move.from);
  if (!move.may_move()) return no_map(ENOMEM);
  return from.kind == Kind::kAnonymous ? move_anonymous(c, move) : move_file(c, move, from.kind);
}

void note_moved(const void* from, size_t old_bytes, const void* to, size_t bytes) {
  mapped_files().move(reinterpret_cast<uintptr_t>(from), round_up(old_bytes, kMmuPageBytes),
                      reinterpret_cast<uintptr_t>(to), round_up(bytes, kMmuPageBytes));
}

}  // namespace

void* remap(void* address, size_t old_bytes, size_t new_bytes, int flags, void* new_address) {
  const bool is_fixed = (flags & MREMAP_FIXED) != 0;
  if (is_fixed && !is_managed(new_address)) forget_replaced(new_address, new_bytes);
  if (!is_managed(address)) {
    if (is_fixed && is_managed(new_address)) return no_map(EINVAL);
    if (auto moved = remap_reads(address, old_bytes, new_bytes, flags, new_address)) {
      if (*moved != MAP_FAILED) note_moved(address, old_bytes, *moved, new_bytes);
      return *moved;
    }
    void* const moved = real().mremap(address, old_bytes, new_bytes, flags, new_address);
    if (moved != MAP_FAILED && mapped_files().has_unmanaged())
      note_moved(address, old_bytes, moved, new_bytes);
    return moved;
  }
  InRuntime guard;
  const Context* c = context();
  const Move move{reinterpret_cast<uintptr_t>(address),
                  is_fixed ? reinterpret_cast<uintptr_t>(new_address) : 0, round_up(old_bytes, kMmuPageBytes),
                  round_up(new_bytes, kMmuPageBytes), flags};
  if (c == nullptr || !is_valid(move)) return no_map(EINVAL);
  return remap_managed(*c, move);
}

void lock_mappings_for_fork() {
  lock_marks_for_fork();
  mapped_files().lock();
}
void unlock_mappings_after_fork() {
  mapped_files().unlock();
  unlock_marks_after_fork();
}
void mappings_in_child() {
  mapped_files().unlock();
  marks_in_child();
}

}  // namespace spw::libc
