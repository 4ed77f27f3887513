#include "libc/map/parts.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>

#include "libc/map/marks.h"
#include "libc/map/rights.h"
#include "platform/reachable.h"

namespace spw::libc {

using heap::Mapping;
using region::Kind;

namespace {

// Between mappings what is live is objects, but for blocks of which a mapping has other pages.
Part part_between_mappings(const Context& c, uintptr_t begin, uintptr_t end) {
  const uint64_t block_bytes = c.regions->block_bytes();
  const auto is_object = [&](uintptr_t at) {
    const uintptr_t block = round_down(at, block_bytes);
    return c.regions->is_live(block, block_bytes) && c.regions->kind_at(block) == Kind::kAnonymous &&
           (block_bytes == kMmuPageBytes ||
            c.heap->mappings().find(block, block + block_bytes).kind == Kind::kNone);
  };
  const bool is_first_object = is_object(begin);
  uintptr_t at = round_down(begin, block_bytes) + block_bytes;
  while (at < end && is_object(at) == is_first_object) at += block_bytes;
  return {begin, std::min(at, end), is_first_object ? Kind::kAnonymous : Kind::kNone, is_first_object};
}

// Bytes from `begin` on that are part of something, and not of a file that is only read, if they are to be stored to.
uintptr_t mapped_until(const Context& c, uintptr_t begin, uintptr_t end, bool is_store) {
  const uint64_t block_bytes = c.regions->block_bytes();
  while (begin < end) {
    const uintptr_t block = round_down(begin, block_bytes);
    const Kind kind = c.regions->kind_at(block);
    if (kind == Kind::kNone || (is_store && kind == Kind::kReadOnlyFile)) return begin;
    begin = block + block_bytes;
  }
  return end;
}

}  // namespace

Part part_at(const Context& c, uintptr_t begin, uintptr_t end) {
  const Mapping hit = c.heap->mappings().find(begin, end);
  if (hit.kind == Kind::kNone) return part_between_mappings(c, begin, end);
  if (hit.address > begin) return part_between_mappings(c, begin, hit.address);
  return {begin, std::min<uintptr_t>(end, hit.end()), hit.kind, false};
}

Pages pages_of(const void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const uintptr_t end = begin + round_up(bytes, kMmuPageBytes);
  const bool is_beyond = bytes > UINTPTR_MAX - kMmuPageBytes || end < begin;
  return {begin, end, begin % kMmuPageBytes == 0 && !is_beyond};
}

Pages pages_around(const void* address, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const uintptr_t begin = round_down(at, kMmuPageBytes);
  return pages_of(pointer(begin), bytes + (at - begin));
}

uintptr_t whole_until(const Context& c, uintptr_t begin, uintptr_t end) {
  while (begin < end) {
    const Part part = part_at(c, begin, end);
    if (part.is_hole()) break;
    begin = part.end;
  }
  return begin;
}

Blocks blocks_around(const Context& c, uintptr_t begin, uintptr_t end) {
  const uint64_t block = c.regions->block_bytes();
  const uintptr_t first = round_down(begin, block);
  return {first, round_up(end, block) - first};
}

void* no_map(int error) {
  errno = error;
  return MAP_FAILED;
}

// Whole blocks become never-written; the edges are zeroed.
void make_zero(const Context& c, uintptr_t begin, uintptr_t end) {
  const uint64_t block = c.regions->block_bytes();
  const uintptr_t first = round_up(begin, block), last = round_down(end, block);
  const auto fill = [&](uintptr_t from, uintptr_t to) {
    if (from >= to) return;
    UsualRightsFor here(c, from, to);
    fill_bytes(pointer(from), 0, to - from);
  };
  if (first >= last) return fill(begin, end);
  fill(begin, first);
  fill(last, end);
  if (is_any_marked(first, last, kPinned)) {  // it stays, and is zeroed where it is
    UsualRightsFor here(c, first, last);
    return c.regions->discard(first, last - first);
  }
  c.regions->discard(first, last - first);
}

size_t reachable_bytes(const void* p, size_t bytes, bool is_store) {
  const Context* c = context();
  if (c == nullptr || bytes == 0 || !is_managed(p)) return bytes;
  const auto begin = reinterpret_cast<uintptr_t>(p);
  if (bytes > UINTPTR_MAX - begin) return bytes;  // the kernel says what is wrong with that
  uintptr_t end = mapped_until(*c, begin, begin + bytes, is_store);
  if (!c->in_place || !has_chosen_rights()) return end - begin;
  for (uintptr_t at = begin; at < end;) {
    uintptr_t to = end;
    const int rights = c->access->program_rights(at, &to);
    if ((rights & (is_store ? PROT_WRITE : PROT_READ | PROT_WRITE | PROT_EXEC)) == 0) return at - begin;
    at = to;
  }
  return end - begin;
}

Reached reach(std::span<iovec> pieces, bool is_store) {
  Reached reached;
  for (iovec& piece : pieces) {
    const size_t bytes = is_managed(piece.iov_base)
                             ? reachable_bytes(piece.iov_base, piece.iov_len, is_store)
                             : platform::reachable_bytes(piece.iov_base, piece.iov_len, is_store);
    ++reached.count;
    reached.bytes += bytes;
    reached.is_cut = bytes < piece.iov_len;
    piece.iov_len = bytes;
    if (reached.is_cut) break;
  }
  return reached;
}

}  // namespace spw::libc
