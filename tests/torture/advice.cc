// madvise with every value, mlock and its kin, mincore, msync.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "guarded.h"
#include "operations.h"

namespace torture {

namespace {

constexpr int kPopulateRead = 22, kFree = 8, kHwPoison = 100, kCollapse = 25;
constexpr uint32_t kFreedPagesMax = 64;

int choose_advice(Random& random) {
  static constexpr int kOften[] = {4, 4, 4, 8, 9, 10, 11, 18, 19, 20, 21, 22, 23, 102, 103};
  static constexpr int kUnknown[] = {5, 6, 7, 27, 28, 99, 104, -1, 1 << 20};
  const uint64_t kind = random.below(100);
  if (kind < 65) return random.of(kOften);
  if (kind < 95) return static_cast<int>(random.below(27));
  if (kind < 97) return kHwPoison + static_cast<int>(random.below(4));
  return random.of(kUnknown);
}

// MADV_FREE: until a page is stored to, it has its old bytes or zeros. Then all are stored to, since which is not
// said.
void free_pages(Context& context, const Range& range) {
  if (range.pages > kFreedPagesMax || !accessible(range, true)) return context.log->word("not_tried");
  uint64_t before[kFreedPagesMax];
  const uint32_t word = static_cast<uint32_t>(context.random.below(kPage / 8)) * 8;
  for (uint32_t page = 0; page < range.pages; ++page) {
    before[page] = *reinterpret_cast<volatile uint64_t*>(range.begin() + page * kPage + word);
  }
  const int done = madvise(range.begin(), range.bytes(), kFree);
  context.log->result("madvise", done);
  for (uint32_t page = 0; page < range.pages; ++page) {
    const uint64_t after = *reinterpret_cast<volatile uint64_t*>(range.begin() + page * kPage + word);
    if (after != before[page] && (done != 0 || after != 0)) context.log->out("neither_old_nor_zero", page);
  }
  if (done == 0) rewrite_pages(context, range);
}

void advise(Context& context) {
  Slot* slot = choose_slot(context.random, kOfAll, context.groups);
  if (slot == nullptr) return context.log->calls();
  const Range range = choose_range(context.random, *slot, kSlotPages);
  log_range(context, range);
  context.log->calls();
  advise_range(context, range);
  if (context.random.percent(60)) probe_range(context, {slot, range.page, std::min(range.pages, 16u)});
}

void look(Context& context) {
  Slot* slot = choose_slot(context.random, kOfAll, context.groups);
  if (slot == nullptr) return context.log->calls();
  const Range range = choose_range(context.random, *slot, kSlotPages);
  log_range(context, range);
  context.log->calls();
  look_at_range(context, range);
}

// What is locked is little, far below the limit that main() sets.
void lock(Context& context) {
  Slot* slot = choose_slot(context.random, kOfMapped, context.groups);
  if (slot == nullptr) return context.log->calls();
  const bool unlocks = context.random.percent(60);
  const Range range = choose_range(context.random, *slot, unlocks ? kSlotPages : 8);
  log_range(context, range);
  context.log->calls();
  static const bool of_managed = allowed("lock_managed_pages");
  if (slot->may_be_managed() && !of_managed) return context.log->word("left_out");
  const uint64_t which = unlocks ? 0 : 1 + context.random.below(4);
  switch (which) {
    case 0:
      context.log->result("munlock", munlock(range.begin(), range.bytes()));
      break;
    case 1:
      context.log->result("mlock", mlock(range.begin(), range.bytes()));
      break;
    case 2:
      context.log->result("mlock2", mlock2(range.begin(), range.bytes(), 0));
      break;
    case 3:
      context.log->result("mlock_onfault", mlock2(range.begin(), range.bytes(), MLOCK_ONFAULT));
      break;
    default:
      context.log->result("mlock_wrong", mlock2(range.begin(), range.bytes(), 2));
      break;
  }
  remark(range, context.number);
}

}  // namespace

void advise_range(Context& context, const Range& range) {
  const int advice = choose_advice(context.random);
  static constexpr const char* kNames[] = {"madvise_normal",
                                           "madvise_random",
                                           "madvise_sequential",
                                           "madvise_willneed",
                                           "madvise_dontneed",
                                           "madvise_5",
                                           "madvise_6",
                                           "madvise_7",
                                           "madvise_free",
                                           "madvise_remove",
                                           "madvise_dontfork",
                                           "madvise_dofork",
                                           "madvise_mergeable",
                                           "madvise_unmergeable",
                                           "madvise_hugepage",
                                           "madvise_nohugepage",
                                           "madvise_dontdump",
                                           "madvise_dodump",
                                           "madvise_wipeonfork",
                                           "madvise_keeponfork",
                                           "madvise_cold",
                                           "madvise_pageout",
                                           "madvise_populate_read",
                                           "madvise_populate_write",
                                           "madvise_dontneed_locked",
                                           "madvise_collapse",
                                           "madvise_26"};
  static constexpr int kKnown = sizeof kNames / sizeof kNames[0];
  const char* name = advice >= 0 && advice < kKnown ? kNames[advice]
                     : advice == 102                ? "madvise_guard_install"
                     : advice == 103                ? "madvise_guard_remove"
                                                    : "madvise_unknown";
  context.log->out("advice", advice);
  // Memory that goes back to malloc is as it was.
  const bool lasting = (advice >= 10 && advice <= 11) || (advice >= 18 && advice <= 19) || advice >= 102;
  // A child would have a hole in a near slot.
  const bool hole = advice == 10 && range.slot->is_near();
  char in_managed[48];
  std::snprintf(in_managed, sizeof in_managed, "managed_%s", name);
  if (!allowed(name) || (range.slot->may_be_managed() && !allowed(in_managed)) || hole ||
      (lasting && range.slot->kind == Kind::kHeap))
    return context.log->word("left_out");
  static const bool reads_unreadable = allowed("unreadable_of_process");
  if (advice == kPopulateRead && range.slot->may_be_managed() && range.slot->is_unreadable &&
      !reads_unreadable)
    return context.log->word("left_out");
  if (advice == kFree) return free_pages(context, range);
  const bool wrong = context.random.one_in(50);
  size_t bytes = range.bytes() - context.random.below(kPage);
  const int done = madvise(range.begin() + (wrong ? 8 : 0), bytes, advice);
  // Whether pages can be collapsed depends on what memory is free.
  if (advice != kCollapse || wrong) context.log->result("madvise", done);
  remark(range, context.number);
}

void look_at_range(Context& context, const Range& range) {
  static unsigned char residency[kGroups][kSlotPages];
  static constexpr int kFlags[] = {
      MS_ASYNC, MS_SYNC, MS_INVALIDATE, MS_SYNC | MS_INVALIDATE, MS_ASYNC | MS_SYNC, 0, 64};
  if (context.random.percent(50)) {
    // What is in memory is nobody's business.
    context.log->result("mincore", mincore(range.begin(), range.bytes(), residency[range.slot->group]));
  } else {
    const int flags = context.random.of(kFlags);
    context.log->out("flags", flags);
    context.log->result("msync", msync(range.begin(), range.bytes(), flags));
  }
}

const Operation advice_operations[] = {
    {"advise", 90, advise, false},
    {"look", 20, look, false},
    {"lock", 16, lock, true},
    {nullptr, 0, nullptr, false},
};

}  // namespace torture
