#include "libc/map/advice.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "libc/entry.h"
#include "libc/io/bounce.h"
#include "libc/io/descriptors.h"
#include "libc/map/mapped_reads.h"
#include "libc/map/marks.h"
#include "libc/map/parts.h"
#include "libc/map/rights.h"
#include "libc/real.h"
#include "platform/raw_calls.h"
#include "store/store.h"

namespace spw::libc {

using region::Kind;

namespace {

// Those that libc's headers may not know yet.
constexpr int kDontNeedLocked = 24, kCollapse = 25, kPopulateRead = 22, kPopulateWrite = 23,
              kSoftOffline = 101;

// A private file's own bytes again: 0, or EIO.
int restore_from_file(const Context& c, const Part& part) {
  const uint64_t block = c.regions->block_bytes();
  Bounce bounce(std::max<size_t>(block, kBounceBytes), true);
  if (bounce.bytes() == 0) return ENOMEM;
  UsualRightsFor here(c, part.begin, part.end);
  for (uintptr_t at = part.begin; at < part.end;) {
    const uintptr_t start = round_down(at, block), stop = std::min(part.end, start + block);
    if (c.regions->kind_at(start) == Kind::kPrivateFile) {
      const region::FileMapping file = c.regions->mapping_at(start);
      store::Request request;
      request.op = store::Op::kRead;
      request.offset_bytes = file.offset_bytes;
      request.segment_count = 1;
      request.segments[0] = {bounce.data(), block};
      if (!file.store->transfer(request)) return EIO;
      copy_bytes(pointer(at), bounce.data() + (at - start), stop - at);
    }
    at = stop;
  }
  return 0;
}

// MADV_DONTNEED: what is anonymous is zero; of a shared file the cache is as good as the file. To the kernel what is
// locked is a mapping of its own: what lies before it is dropped.
int drop(const Context& c, Part part, int advice) {
  const uintptr_t end = advice == kDontNeedLocked ? part.end : unlocked_until(part.begin, part.end);
  if (end < part.end) {
    part.end = end;
    const int error = end > part.begin ? drop(c, part, advice) : 0;
    return error != 0 ? error : EINVAL;
  }
  if (part.kind == Kind::kPrivateFile) return advice == MADV_FREE ? EINVAL : restore_from_file(c, part);
  if (part.kind != Kind::kAnonymous) return advice == MADV_FREE ? EINVAL : 0;
  make_zero(c, part.begin, part.end);
  return 0;
}

// Only shared mappings have it. The file holds zeros then, in place of a hole.
int remove(const Part& part) {
  if (part.kind == Kind::kAnonymous || is_any_marked(part.begin, part.end, kLocked)) return EINVAL;
  if (part.kind != Kind::kSharedFile) return EACCES;
  fill_bytes(pointer(part.begin), 0, part.end - part.begin);
  return 0;
}

int will_need(const Context& c, const Part& part) {
  const Blocks blocks = blocks_around(c, part.begin, part.end);
  c.regions->prefetch(blocks.begin, blocks.bytes);
  return 0;
}

int populate(const Context& c, const Part& part, bool is_store) {
  const size_t bytes = part.end - part.begin;
  const size_t reached = reachable_bytes(pointer(part.begin), bytes, is_store);
  if (reached == bytes) return will_need(c, part);
  const uintptr_t wrong = round_down(part.begin + reached, c.regions->block_bytes());
  return c.regions->kind_at(wrong) == Kind::kNone ? EFAULT
                                                  : EINVAL;  // behind the end of a file, or without the right
}

int order(const Context& c, const Part& part, region::Order order) {
  c.regions->advise_order(part.begin, part.end - part.begin, order);
  return 0;
}

int mark(const Part& part, Mark mark, bool is_set) {
  if (mark == kWipeOnFork && is_set && part.kind != Kind::kAnonymous) return EINVAL;
  set_mark(part.begin, part.end, mark, is_set);
  return 0;
}

int keep_from_dumps(const Context& c, const Part& part, bool is_kept) {
  set_mark(part.begin, part.end, kNotDumped, is_kept);
  if (!is_kept)
    let_go(c, part.begin, part.end);
  else if (part.kind == Kind::kAnonymous)
    hold_in_memory(c, part.begin, part.end);
  if (!c.in_place) return 0;
  const int advice = is_kept ? MADV_DONTDUMP : MADV_DODUMP;
  return platform::raw::madvise(pointer(part.begin), part.end - part.begin, advice) == 0 ? 0 : errno;
}

// Of the kernel this runs on, which may be without huge pages or merging: asked of a page of no importance.
bool kernel_knows(int advice) {
  static void* const page =
      real().mmap(nullptr, kMmuPageBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page != MAP_FAILED && platform::raw::madvise(page, kMmuPageBytes, advice) == 0;
}

// What it does to one part: 0, or an error that ends the call.
int advise_part(const Context& c, const Part& part, int advice) {
  switch (advice) {
    case MADV_DONTNEED:
    case kDontNeedLocked:
    case MADV_FREE:
      return drop(c, part, advice);
    case MADV_REMOVE:
      return remove(part);
    case MADV_WILLNEED:
      return will_need(c, part);
    case kPopulateRead:
    case kPopulateWrite:
      return populate(c, part, advice == kPopulateWrite);
    case MADV_NORMAL:
      return order(c, part, region::Order::kUnknown);
    case MADV_RANDOM:
      return order(c, part, region::Order::kRandom);
    case MADV_SEQUENTIAL:
      return order(c, part, region::Order::kSequential);
    case MADV_DONTFORK:
    case MADV_DOFORK:
      return mark(part, kNotInChild, advice == MADV_DONTFORK);
    case MADV_WIPEONFORK:
    case MADV_KEEPONFORK:
      return mark(part, kWipeOnFork, advice == MADV_WIPEONFORK);
    case MADV_DONTDUMP:
    case MADV_DODUMP:
      return keep_from_dumps(c, part, advice == MADV_DONTDUMP);
    case MADV_COLD:
    case MADV_PAGEOUT:
      return is_any_marked(part.begin, part.end, kLocked) ? EINVAL : 0;
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
      c.access->advise_huge_pages(part.begin, part.end - part.begin, advice == MADV_HUGEPAGE);
      return 0;
    default:  // merging: a hint that managed memory does without
      return 0;
  }
}

// 0, or why the call does nothing at all.
int refused(int advice) {
  switch (advice) {
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_WILLNEED:
    case MADV_DONTNEED:
    case MADV_FREE:
    case MADV_REMOVE:
    case MADV_DONTFORK:
    case MADV_DOFORK:
    case MADV_WIPEONFORK:
    case MADV_KEEPONFORK:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_COLD:
    case MADV_PAGEOUT:
    case kPopulateRead:
    case kPopulateWrite:
    case kDontNeedLocked:
      return 0;
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
      return kernel_knows(advice) ? 0 : EINVAL;
    case kCollapse:  // "no huge page to be had", which a program has to take anyway
      return EAGAIN;
    case MADV_HWPOISON:
    case kSoftOffline:
      return geteuid() == 0 ? EINVAL : EPERM;
    default:  // and guards (102, 103), as with kernels that have none
      return EINVAL;
  }
}

// What lies behind a hole is not advised.
bool ends_at_hole(int advice) { return advice == kPopulateRead || advice == kPopulateWrite; }

}  // namespace

int advise_mapping(void* address, size_t bytes, int advice) {
  if (!is_managed(address)) {
    const auto advised = advise_reads(address, bytes, advice);
    return advised ? *advised : real().madvise(address, bytes, advice);
  }
  InRuntime guard;
  const Context* c = context();
  const Pages pages = pages_of(address, bytes);
  if (c == nullptr || !pages.is_valid) return static_cast<int>(fail(EINVAL));
  if (const int error = refused(advice); error != 0) return static_cast<int>(fail(error));
  int error = 0;
  const uintptr_t end = ends_at_hole(advice) ? whole_until(*c, pages.begin, pages.end) : pages.end;
  const bool is_whole = for_each_part(*c, pages.begin, end, [&](const Part& part) {
    error = advise_part(*c, part, advice);
    return error == 0;
  });
  if (error != 0) return static_cast<int>(fail(error));
  return is_whole && end == pages.end ? 0 : static_cast<int>(fail(ENOMEM));
}

}  // namespace spw::libc
