#include "libc/aio/aio_notify.h"

#include <pthread.h>
#include <string.h>

#include "libc/aio/aio.h"
#include "libc/managed.h"
#include "libc/signals/signal_lock.h"

namespace spw::libc {

namespace {

pthread_attr_t g_attributes[kAttributesMax];
unsigned g_attribute_count = 0;

// In a thread of libc's making, with no signal blocked.
void notified(sigval of) {
  ShadowTable::Held shadow(posix_shadows, static_cast<Shadow*>(of.sival_ptr));
  end_all_that_is_over();
  void (*function)(sigval) = shadow->notify;
  const sigval value = shadow->notify_value;
  posix_shadows.let_go(shadow.release());
  function(value);
}

}  // namespace

void notify_through(Shadow& shadow, sigevent* event) {
  if (event->sigev_notify != SIGEV_THREAD) return;
  shadow.notify = event->sigev_notify_function;
  shadow.notify_value = event->sigev_value;
  ++shadow.holds;
  event->sigev_notify_function = &notified;
  event->sigev_value.sival_ptr = &shadow;
}

void forget_notification(Shadow& shadow) {
  if (std::exchange(shadow.notify, nullptr) != nullptr) posix_shadows.let_go(&shadow);
}

bool make_attributes_native(sigevent* event) {
  if (event->sigev_notify != SIGEV_THREAD || !kernel_cannot_reach(event->sigev_notify_attributes))
    return true;
  const pthread_attr_t wanted = load_value(event->sigev_notify_attributes);
  SignalLock lock;
  for (unsigned i = 0; i < kAttributesMax; ++i) {
    if (i == g_attribute_count) g_attributes[g_attribute_count++] = wanted;
    if (memcmp(&g_attributes[i], &wanted, sizeof wanted) != 0) continue;
    event->sigev_notify_attributes = &g_attributes[i];
    return true;
  }
  return false;
}

}  // namespace spw::libc
