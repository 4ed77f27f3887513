// The functions of libc that touch much memory. Where they stop, and in which direction they go, is not said: of
// ranges that cannot be reached as a whole only it is compared that a signal came.
#include <algorithm>
#include <cstring>

#include "guarded.h"
#include "operations.h"

namespace torture {

namespace {

constexpr uint32_t kPagesMax = 64, kUnreachablePagesMax = 16;

struct Chosen {
  Range range;
  bool reachable;
};

Chosen choose(Context& context, unsigned groups, uint32_t pages_max) {
  Slot* slot = choose_slot(context.random, kOfAll, groups);
  if (slot == nullptr) return {{nullptr, 0, 0}, false};
  const Range range = choose_range(context.random, *slot, pages_max);
  log_range(context, range);
  return {range, false};
}

void set(Context& context) {
  Chosen chosen = choose(context, context.groups, kPagesMax);
  context.log->calls();
  const Range& range = chosen.range;
  if (range.slot == nullptr) return;
  const bool reachable = accessible(range, true);
  if (!reachable && range.pages > kUnreachablePagesMax) return;
  const size_t first = context.random.below(kPage), last = range.bytes() - context.random.below(kPage);
  const auto value = static_cast<int>(context.random.next());
  context.log->out("ended", guarded([&] {
                     if (first < last) std::memset(range.begin() + first, value, last - first);
                   }));
  if (!reachable) rewrite_pages(context, range);
}

// From one slot to another, or within one.
void move(Context& context) {
  Chosen from = choose(context, context.groups, 64);
  if (from.range.slot == nullptr) return context.log->calls();
  Chosen to = choose(context, 1u << from.range.slot->group, from.range.pages);
  context.log->calls();
  if (to.range.slot == nullptr) return;
  const size_t bytes = std::min(from.range.bytes(), to.range.bytes()) - context.random.below(kPage);
  const bool reachable = accessible(from.range, false) && accessible(to.range, true);
  if (!reachable && from.range.pages > kUnreachablePagesMax) return;
  // Two mappings of one file may be the same memory, which neither function is made for: by way of other memory,
  // then.
  char* bounce = scratches[from.range.slot->group].bytes;
  const bool ended = guarded([&] {
    if (from.range.slot == to.range.slot) {
      std::memmove(to.range.begin(), from.range.begin(), bytes);
      return;
    }
    for (size_t at = 0; at < bytes; at += sizeof scratches[0].bytes) {
      const size_t part = std::min(bytes - at, sizeof scratches[0].bytes);
      std::memcpy(bounce, from.range.begin() + at, part);
      std::memcpy(to.range.begin() + at, bounce, part);
    }
  });
  context.log->out("ended", ended);
  if (!reachable) rewrite_pages(context, to.range);
}

void length(Context& context) {
  Chosen chosen = choose(context, context.groups, 32);
  context.log->calls();
  const Range& range = chosen.range;
  if (range.slot == nullptr || !accessible(range, true)) return;
  const size_t end = context.random.below(range.bytes()), first = context.random.below(end + 1);
  // No zero before `end`.
  std::memset(range.begin() + first, 7, end - first);
  range.begin()[end] = 0;
  context.log->out("strlen", static_cast<int64_t>(std::strlen(range.begin() + first)));
  const void* found = std::memchr(range.begin() + first, 0, range.bytes() - first);
  context.log->out("memchr", found == nullptr ? -1 : static_cast<const char*>(found) - range.begin());
}

void compare(Context& context) {
  Chosen one = choose(context, context.groups, 32);
  if (one.range.slot == nullptr) return context.log->calls();
  Chosen other = choose(context, 1u << one.range.slot->group, one.range.pages);
  context.log->calls();
  if (other.range.slot == nullptr || !accessible(one.range, false) || !accessible(other.range, false)) return;
  const int difference =
      std::memcmp(one.range.begin(), other.range.begin(), std::min(one.range.bytes(), other.range.bytes()));
  context.log->out("difference", (difference > 0) - (difference < 0));
}

}  // namespace

const Operation libc_operations[] = {
    {"set", 24, set, false},         {"move", 24, move, false},    {"length", 10, length, false},
    {"compare", 10, compare, false}, {nullptr, 0, nullptr, false},
};

}  // namespace torture
