#include "cache/extents/extent_word.h"

#include "platform/futex.h"

namespace spw::cache {

namespace {
constexpr uint64_t kSleepNsMax = 100'000'000;  // only a safeguard
}

void AtomicExtentWord::set(ExtentState state, uint64_t pins) {
  ExtentWord seen = load();
  while (!change(&seen, seen.in(state).with_pins(pins).without_sleepers())) {
  }
  if (seen.has_sleepers()) platform::futex_wake_all(low_half());
}

void AtomicExtentWord::await_change(ExtentWord seen) {
  if (!seen.has_sleepers()) {
    const ExtentWord asleep = seen.with_sleepers();
    if (!change(&seen, asleep)) return;
    seen = asleep;
  }
  (void)platform::futex_wait(low_half(), static_cast<uint32_t>(seen.bits()), kSleepNsMax);
}

}  // namespace spw::cache
