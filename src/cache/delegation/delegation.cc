#include "cache/delegation/delegation.h"

#include "platform/futex.h"
#include "platform/spin.h"

namespace spw::cache {

namespace {
// About what an owner takes for a few requests; a longer wait is worth a sleep.
constexpr int kSpinsMax = 100;
}  // namespace

void await_answer(Request& request) {
  for (int i = 0; i < kSpinsMax; ++i) {
    if (request.state.load_acquire() == kAnswered) return;
    platform::spin_pause();
  }
  uint32_t posted = kPosted;
  request.state.cas_strong_acquire(posted, kAsleep);  // fails if it was answered meanwhile
  while (request.state.load_acquire() != kAnswered) platform::futex_wait(request.state, kAsleep);
}

bool hand_back(Request& request) { return request.state.exchange_acq_rel(kAnswered) == kAsleep; }

}  // namespace spw::cache
