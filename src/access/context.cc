#include "access/context.h"

namespace spw::access {

namespace detail {

Atomic<const Context*> context{nullptr};
Atomic<bool> in_place{false};
Atomic<bool> forked{false};
Atomic<bool> kernel_reaches{false};

namespace {
Atomic<void (*)()> initialiser{nullptr};
}  // namespace

const Context* initialise() {
  // Whoever takes the pointer calls it; others go native until it is done. What it allocates is the runtime's own.
  if (initialiser.load_relaxed() == nullptr) return context.load_acquire();
  if (auto* ensure = initialiser.exchange_acquire(nullptr)) {
    InRuntime guard;
    ensure();
  }
  return context.load_acquire();
}

}  // namespace detail

void set_context(const Context* context) {
  detail::in_place.store_relaxed(context != nullptr && (context->in_place || context->in_place_at_first));
  if (context == nullptr) detail::kernel_reaches.store_relaxed(false);
  detail::context.store_release(context);
}
void elsewhere_from_now_on() { detail::in_place.store_relaxed(false); }
void kernel_reaches_from_now_on() { detail::kernel_reaches.store_relaxed(true); }
void kernel_reaches_no_more() { detail::kernel_reaches.store_relaxed(false); }
void note_forked() { detail::forked.store_relaxed(true); }
void set_initialiser(void (*ensure_initialised)()) { detail::initialiser.store_release(ensure_initialised); }

}  // namespace spw::access
