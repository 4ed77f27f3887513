#include <cerrno>
#include <cstdint>

#include "abi/managed.h"
#include "region/managed_access.h"
#include "runtime/startup.h"
#include "spillway/spillway.h"

#define SPW_PUBLIC extern "C" __attribute__((visibility("default")))

namespace {

using spw::runtime::Runtime;

static_assert(SPW_PINS_PER_THREAD == spw::region::kWindowsPerThread);

}  // namespace

SPW_PUBLIC const char* spw_version(void) { return SPW_VERSION_TEXT; }

SPW_PUBLIC int spw_is_managed(const void* address) { return spw::is_managed(address) ? 1 : 0; }

SPW_PUBLIC int spw_pin(const void* address, size_t bytes, enum spw_access access, struct spw_pinned* pin) {
  Runtime* runtime = spw::runtime::current_runtime();
  if (!pin || bytes == 0 || !spw::is_managed(address) || access > SPW_OVERWRITE || !runtime) return -EINVAL;
  constexpr spw::cache::Access kAccess[] = {spw::cache::Access::kRead, spw::cache::Access::kWrite,
                                            spw::cache::Access::kOverwrite};
  spw::region::Window window =
      runtime->engine().hold(reinterpret_cast<uintptr_t>(address), bytes, kAccess[access]);
  if (!window.data) return -EMFILE;
  *pin = {window.data, window.bytes, window.frame.value};
  return 0;
}

SPW_PUBLIC int spw_unpin(const struct spw_pinned* pin) {
  Runtime* runtime = spw::runtime::current_runtime();
  if (!pin || !pin->data || !runtime) return -EINVAL;
  spw::region::Window window{static_cast<std::byte*>(pin->data), pin->bytes,
                             spw::FrameId(static_cast<uint32_t>(pin->reserved))};
  return runtime->engine().release(window) ? 0 : -EINVAL;
}

SPW_PUBLIC int spw_prefetch(const void* address, size_t bytes) {
  Runtime* runtime = spw::runtime::current_runtime();
  if (!spw::is_managed(address) || !runtime) return 0;
  runtime->regions().prefetch(reinterpret_cast<uintptr_t>(address), bytes);
  return 0;
}
