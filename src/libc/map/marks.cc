#include "libc/map/marks.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "base/interval_map.h"
#include "base/units.h"
#include "libc/alloc/rules.h"
#include "libc/entry.h"
#include "libc/io/descriptors.h"
#include "libc/io/native_argument.h"
#include "libc/map/mapping.h"
#include "libc/map/parts.h"
#include "libc/real.h"
#include "platform/raw_calls.h"

namespace spw::libc {

namespace {

// What is kept in memory, in pieces as they are pinned.
struct Pieces {
  const Mark mark;
  std::map<uintptr_t, uintptr_t> of{};  // begin -> end
  uint64_t bytes = 0;

  void forget() { of.clear(), bytes = 0; }
};

struct Marks {
  std::mutex mutex;
  IntervalMap<uint8_t> of{0};
  Pieces locked{kLocked}, held{kHeld}, stacks{kStack};
  Atomic<bool> is_any{false};

  std::array<Pieces*, 3> pinned() { return {&locked, &held, &stacks}; }
};
// Never destroyed: munmap may run at exit.
Marks& marks() {
  static auto* made = new Marks;
  return *made;
}

bool may_lock(uint64_t bytes) {
  rlimit limit{};
  return geteuid() == 0 || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         bytes <= limit.rlim_cur;
}

// Before the mutex is taken to pin: in a forked child, the parts that it waits for hold what is inherited, by the same
// mutex.
void await_pins(const Context& c) {
  if (c.pins.await != nullptr) c.pins.await();
}

// Under the mutex.
bool pin_piece(const Context& c, Marks& m, Pieces& pieces, uintptr_t begin, uintptr_t end) {
  const Blocks blocks = blocks_around(c, begin, end);
  if (c.pins.pin == nullptr || !c.pins.pin(blocks.begin, blocks.bytes)) return false;
  pieces.of.emplace(begin, end);
  pieces.bytes += end - begin;
  m.of.change(begin, end, [&](uint8_t was) { return was | pieces.mark; });
  m.is_any.store_relaxed(true);
  return true;
}

// What of the pieces lies outside of [begin, end) is pinned again, of which there is room: it was pinned before.
void unpin_pieces(const Context& c, Marks& m, Pieces& pieces, uintptr_t begin, uintptr_t end) {
  auto piece = pieces.of.upper_bound(begin);
  if (piece != pieces.of.begin() && std::prev(piece)->second > begin) --piece;
  while (piece != pieces.of.end() && piece->first < end) {
    const auto [from, to] = *piece;
    piece = pieces.of.erase(piece);
    pieces.bytes -= to - from;
    const Blocks blocks = blocks_around(c, from, to);
    c.pins.unpin(blocks.begin, blocks.bytes);
    m.of.change(from, to, [&](uint8_t was) { return was & ~pieces.mark; });
    if (from < begin) (void)pin_piece(c, m, pieces, from, begin);
    if (end < to) (void)pin_piece(c, m, pieces, end, to);
  }
}

void unpin_any(const Context& c, Pieces Marks::* pieces, uintptr_t begin, uintptr_t end) {
  Marks& m = marks();
  if (!m.is_any.load_relaxed()) return;
  std::lock_guard lock(m.mutex);
  unpin_pieces(c, m, m.*pieces, begin, end);
}

using Ranges = std::vector<std::pair<uintptr_t, uintptr_t>>;

// What of [begin, end) is in none of them.
Ranges not_pinned(Marks& m, const Pieces& pieces, uintptr_t begin, uintptr_t end, uint64_t* bytes) {
  Ranges found;
  (void)m.of.for_each(begin, end, [&](uintptr_t from, uintptr_t to, uint8_t has) {
    if ((has & pieces.mark) != 0) return true;
    if (!found.empty() && found.back().second == from)
      found.back().second = to;
    else
      found.emplace_back(from, to);
    *bytes += to - from;
    return true;
  });
  return found;
}

// Pins what of the range is not among the pieces yet, if they may have that many bytes then. Under the mutex.
bool keep(const Context& c, Marks& m, Pieces& pieces, uintptr_t begin, uintptr_t end,
          bool (*may)(uint64_t bytes)) {
  uint64_t bytes = pieces.bytes;
  const Ranges wanted = not_pinned(m, pieces, begin, end, &bytes);
  return may(bytes) && std::all_of(wanted.begin(), wanted.end(), [&](const auto& range) {
           return pin_piece(c, m, pieces, range.first, range.second);
         });
}

void warn_of_clear_secrets(const Context& c) {
  static Atomic<bool> told{false};
  if (c.warn != nullptr && !told.exchange_acquire(true))
    c.warn(
        "memory that is to be in no core dump (MADV_DONTDUMP) is spilled in the clear, but for the first " +
        format_size(kHeldBytesMax) + "; --encrypt=on encrypts what is spilled");
}

// Under the mutex.
void hold(const Context& c, Marks& m, uintptr_t begin, uintptr_t end) {
  const auto may_hold = [](uint64_t bytes) { return bytes <= kHeldBytesMax; };
  if (c.spills_in_clear && !keep(c, m, m.held, begin, end, may_hold)) warn_of_clear_secrets(c);
}

}  // namespace

bool is_any_marked(uintptr_t begin, uintptr_t end, Mark mark) {
  Marks& m = marks();
  if (!m.is_any.load_relaxed()) return false;
  std::lock_guard lock(m.mutex);
  return !m.of.for_each(begin, end, [&](uintptr_t, uintptr_t, uint8_t has) { return (has & mark) == 0; });
}

uintptr_t unlocked_until(uintptr_t begin, uintptr_t end) {
  Marks& m = marks();
  if (!m.is_any.load_relaxed()) return end;
  std::lock_guard lock(m.mutex);
  uintptr_t until = end;
  (void)m.of.for_each(begin, end, [&](uintptr_t from, uintptr_t, uint8_t has) {
    if ((has & kLocked) != 0) until = from;
    return (has & kLocked) == 0;
  });
  return until;
}

void set_mark(uintptr_t begin, uintptr_t end, Mark mark, bool is_set) {
  Marks& m = marks();
  if (!is_set && !m.is_any.load_relaxed()) return;
  std::lock_guard lock(m.mutex);
  m.of.change(begin, end, [&](uint8_t was) { return is_set ? was | mark : was & ~mark; });
  m.is_any.store_relaxed(true);
}

int lock_in_memory(const Context& c, uintptr_t begin, uintptr_t end) {
  Marks& m = marks();
  await_pins(c);
  std::lock_guard lock(m.mutex);
  return keep(c, m, m.locked, begin, end, &may_lock) ? 0 : ENOMEM;
}

void unlock_in_memory(const Context& c, uintptr_t begin, uintptr_t end) {
  unpin_any(c, &Marks::locked, begin, end);
}

bool keep_stack(const Context& c, uintptr_t begin, uintptr_t end) {
  Marks& m = marks();
  await_pins(c);
  std::lock_guard lock(m.mutex);
  return keep(c, m, m.stacks, begin, end, [](uint64_t) { return true; });
}

void release_stack(const Context& c, uintptr_t begin, uintptr_t end) {
  unpin_any(c, &Marks::stacks, begin, end);
}

void hold_in_memory(const Context& c, uintptr_t begin, uintptr_t end) {
  Marks& m = marks();
  await_pins(c);
  std::lock_guard lock(m.mutex);
  hold(c, m, begin, end);
}

void let_go(const Context& c, uintptr_t begin, uintptr_t end) {
  Marks& m = marks();
  if (!m.is_any.load_relaxed()) return;
  std::lock_guard lock(m.mutex);
  unpin_pieces(c, m, m.held, begin, end);
  m.of.change(begin, end, [](uint8_t was) { return was & ~kHeld; });  // in a child, of what is not held yet
}

void remove_marks(const Context& c, uintptr_t begin, uintptr_t end) {
  Marks& m = marks();
  if (!m.is_any.load_relaxed()) return;
  std::lock_guard lock(m.mutex);
  for (Pieces* pieces : m.pinned()) unpin_pieces(c, m, *pieces, begin, end);
  (void)m.of.for_each(begin, end, [](uintptr_t from, uintptr_t to, uint8_t has) {
    if ((has & kNotDumped) != 0) (void)platform::raw::madvise(pointer(from), to - from, MADV_DODUMP);
    return true;
  });
  m.of.set(begin, end, 0);
}

void copy_marks(const Context& c, uintptr_t from, uintptr_t to, uint64_t bytes) {
  Marks& m = marks();
  if (!m.is_any.load_relaxed()) return;
  await_pins(c);
  std::lock_guard lock(m.mutex);
  std::vector<std::pair<uintptr_t, uint8_t>> parts;
  (void)m.of.for_each(from, from + bytes, [&](uintptr_t begin, uintptr_t, uint8_t has) {
    parts.emplace_back(begin - from, has & ~kPinned);
    return true;
  });
  for (size_t i = 0; i < parts.size(); ++i) {
    const uintptr_t begin = to + parts[i].first,
                    end = to + (i + 1 < parts.size() ? parts[i + 1].first : bytes);
    m.of.set(begin, end, parts[i].second);
    if ((parts[i].second & kNotDumped) == 0) continue;
    (void)platform::raw::madvise(pointer(begin), end - begin, MADV_DONTDUMP);
    hold(c, m, begin, end);
  }
}

void lock_marks_for_fork() { marks().mutex.lock(); }
void unlock_marks_after_fork() { marks().mutex.unlock(); }

namespace {

// What becomes of a range in a child.
struct Inherited {
  uintptr_t begin, end;
  uint8_t marks;

  bool is_there() const { return (marks & kNotInChild) == 0; }
};

void inherit(const Context& c, const Inherited& range) {
  std::vector<Part> parts;
  for_each_part(c, range.begin, range.end, [&](const Part& part) {
    parts.push_back(part);
    return true;
  });
  for (const Part& part : parts) {
    if (range.is_there())
      make_zero(c, part.begin, part.end);
    else if (!part.is_object)
      (void)unmap(pointer(part.begin), part.end - part.begin);
  }
}

}  // namespace

// What was pinned is the parent's; what it held keeps its mark until hold_what_is_inherited(). Objects of malloc stay
// in a child: it may free them.
void marks_in_child() {
  Marks& m = marks();
  for (Pieces* pieces : m.pinned()) pieces->forget();
  std::vector<Inherited> ranges;
  (void)m.of.for_each(SPW_MANAGED_BASE, SPW_MANAGED_BASE + SPW_MANAGED_BYTES,
                      [&](uintptr_t begin, uintptr_t end, uint8_t has) {
                        if ((has & (kWipeOnFork | kNotInChild)) != 0) ranges.push_back({begin, end, has});
                        return true;
                      });
  m.of.change(SPW_MANAGED_BASE, SPW_MANAGED_BASE + SPW_MANAGED_BYTES,
              [](uint8_t was) { return was & ~(kLocked | kStack); });
  m.mutex.unlock();
  if (const Context* c = context(); c != nullptr)
    for (const Inherited& range : ranges) inherit(*c, range);
}

void hold_what_is_inherited(const Context& c) {
  Marks& m = marks();
  if (!m.is_any.load_relaxed()) return;
  std::lock_guard lock(m.mutex);
  Ranges ranges;
  (void)m.of.for_each(SPW_MANAGED_BASE, SPW_MANAGED_BASE + SPW_MANAGED_BYTES,
                      [&](uintptr_t begin, uintptr_t end, uint8_t has) {
                        if ((has & kHeld) != 0) ranges.emplace_back(begin, end);
                        return true;
                      });
  for (const auto& [begin, end] : ranges) {
    m.of.change(begin, end, [](uint8_t was) { return was & ~kHeld; });
    hold(c, m, begin, end);
  }
}

// As the kernel: what lies before a hole is locked. Where the program may not access it, too, but then it is an error.
int lock_pages(const void* address, size_t bytes, unsigned flags) {
  if (!is_managed(address))
    return flags == 0 ? real().mlock(address, bytes) : real().mlock2(address, bytes, flags);
  if ((flags & ~static_cast<unsigned>(MLOCK_ONFAULT)) != 0) return static_cast<int>(fail(EINVAL));
  InRuntime guard;
  const Context* c = context();
  const Pages pages = pages_around(address, bytes);
  if (!pages.is_valid) return static_cast<int>(fail(EINVAL));
  if (c == nullptr || pages.is_empty()) return 0;
  const uintptr_t end = whole_until(*c, pages.begin, pages.end);
  const int error = end > pages.begin ? lock_in_memory(*c, pages.begin, end) : 0;
  const size_t locked = end - pages.begin;
  const bool comes_later = (flags & MLOCK_ONFAULT) != 0;
  const bool is_whole =
      end == pages.end && (comes_later || reachable_bytes(pointer(pages.begin), locked, false) == locked);
  return error == 0 && is_whole ? 0 : static_cast<int>(fail(ENOMEM));
}

int unlock_pages(const void* address, size_t bytes) {
  if (!is_managed(address)) return real().munlock(address, bytes);
  InRuntime guard;
  const Context* c = context();
  const Pages pages = pages_around(address, bytes);
  if (!pages.is_valid) return static_cast<int>(fail(EINVAL));
  if (c == nullptr || pages.is_empty()) return 0;
  unlock_in_memory(*c, pages.begin, pages.end);
  return has_no_hole(*c, pages.begin, pages.end) ? 0 : static_cast<int>(fail(ENOMEM));
}

int lock_all(int flags) {
  if (!manages_any_code()) return real().mlockall(flags);
  static Atomic<bool> told{false};
  const Context* c = context();
  if (c != nullptr && c->warn != nullptr && !told.exchange_acquire(true))
    c->warn(
        "mlockall is refused (ENOMEM): memory that may outgrow the cap cannot all be locked; mlock can, up "
        "to half of it");
  return static_cast<int>(fail(ENOMEM));
}

int unlock_all() {
  if (const Context* c = context(); c != nullptr) {
    InRuntime guard;
    unlock_in_memory(*c, SPW_MANAGED_BASE, SPW_MANAGED_BASE + SPW_MANAGED_BYTES);
  }
  return real().munlockall();
}

int resident_pages(void* address, size_t bytes, unsigned char* out) {
  const Pages pages = pages_of(address, bytes);
  const Native<unsigned char> native(out, (pages.end - pages.begin) / kMmuPageBytes);
  const int result = real().mincore(address, bytes, native);
  if (result != 0 || !is_managed(address)) return result;
  InRuntime guard;
  const Context* c = context();
  return c == nullptr || has_no_hole(*c, pages.begin, pages.end) ? 0 : static_cast<int>(fail(ENOMEM));
}

}  // namespace spw::libc
