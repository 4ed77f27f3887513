#include "process/forked_child.h"

#include <pthread.h>

#include "base/atomic.h"
#include "base/in_runtime.h"
#include "platform/futex.h"
#include "platform/thread.h"
#include "process/fatal.h"
#include "process/runtime.h"

namespace spw::process {

namespace {

// kWaits -> kWanted -> kDone, or at once to kDone. Threads sleep on it.
constexpr uint32_t kDone = 0, kWaits = 1, kWanted = 2;
constinit Atomic<uint32_t> g_state{kDone};
constinit Atomic<bool> g_has_maker{false};
pthread_mutex_t g_making_anew = PTHREAD_MUTEX_INITIALIZER;
Runtime* g_forked_runtime = nullptr;
void (*g_made)(Runtime&) = nullptr;

void make() {
  while (g_state.load_acquire() == kWaits)
    if (platform::futex_wait(g_state, kWaits, kWithoutAskingNs) == platform::FutexWait::kTimedOut) break;
  pthread_mutex_lock(&g_making_anew);
  if (Status status = g_forked_runtime->make_anew(); !status)
    fatal(kExitFailure, "a forked child cannot go on: " + status.message());
  // A fork that waited takes other locks first, which made() takes, too.
  pthread_mutex_unlock(&g_making_anew);
  g_made(*g_forked_runtime);
  g_state.store_release(kDone);
  platform::futex_wake_all(g_state);
}

Status start_maker() {
  if (g_has_maker.exchange_acquire(true)) return {};
  auto maker = platform::Thread::start(&make);
  if (!maker) {
    g_has_maker.store_release(false);
    return maker.status();
  }
  new platform::Thread(std::move(*maker));  // nobody waits for its end
  return {};
}

}  // namespace

void hold_children() { pthread_mutex_lock(&g_making_anew); }
void let_children_go() { pthread_mutex_unlock(&g_making_anew); }

void child_begins(Runtime& runtime, bool starts_at_once, void (*made)(Runtime&)) {
  g_forked_runtime = &runtime;
  g_made = made;
  g_has_maker.store_relaxed(false);
  g_state.store_relaxed(kWaits);
  pthread_mutex_unlock(&g_making_anew);
  if (starts_at_once) (void)start_maker().is_ok();  // else who needs it tries again
}

void await_parts_of_child() {
  uint32_t state = kWaits;
  if (g_state.load_acquire() == kDone) return;
  if (g_state.cas_strong_acq_rel(state, kWanted)) platform::futex_wake_all(g_state);
  InRuntime guard;
  if (Status status = start_maker(); !status)
    fatal(kExitFailure, "a forked child cannot go on: " + status.message());
  for (state = g_state.load_acquire(); state != kDone; state = g_state.load_acquire())
    platform::futex_wait(g_state, state);
}

}  // namespace spw::process
