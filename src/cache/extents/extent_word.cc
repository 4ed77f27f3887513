#include "cache/extents/extent_word.h"

#include "platform/futex.h"

namespace spw::cache {

void AtomicExtentWord::set(ExtentState state, uint64_t pins) {
  ExtentWord seen = load();
  while (!change(&seen, seen.in(state).with_pins(pins).without_sleepers())) {
  }
  if (seen.has_sleepers()) wake();
}

void AtomicExtentWord::wake() { platform::futex_wake_all(low_half()); }

void AtomicExtentWord::await_change(ExtentWord seen, uint64_t timeout_ns) {
  if (!seen.has_sleepers()) {
    const ExtentWord asleep = seen.with_sleepers();
    if (!change(&seen, asleep)) return;
    seen = asleep;
  }
  (void)platform::futex_wait(low_half(), static_cast<uint32_t>(seen.bits()), timeout_ns);
}

}  // namespace spw::cache
