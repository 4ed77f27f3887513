// The version, and pins of single blocks.
#include "abi/managed.h"
#include "access/managed_access.h"
#include "api/call.h"

using namespace spw;
using namespace spw::api;

static_assert(SPW_PINS_PER_THREAD == access::kWindowsPerThread);

SPW_PUBLIC const char* spw_version(void) { return SPW_VERSION_TEXT; }

SPW_PUBLIC int spw_is_managed(const void* address) { return is_managed(address) ? 1 : 0; }

SPW_PUBLIC int spw_pin(const void* address, size_t bytes, enum spw_access access, struct spw_pinned* pin) {
  process::Runtime* runtime = process::current_runtime();
  if (!pin || bytes == 0 || !is_managed(address) || access > SPW_OVERWRITE || !runtime)
    return bad_argument("spw_pin takes managed memory, at least one byte");
  if (access != SPW_READ && is_read_only(*runtime, address, bytes))
    return bad_argument("spw_pin: it is mapped read-only");
  access::Window window =
      runtime->engine().hold(reinterpret_cast<uintptr_t>(address), bytes, access_of(access));
  if (!window.data) return result_of(Status::sentence(EMFILE, "too many pins are held"));
  *pin = {window.data, window.bytes, window.frame.value};
  return 0;
}

SPW_PUBLIC int spw_unpin(const struct spw_pinned* pin) {
  process::Runtime* runtime = process::current_runtime();
  if (!pin || !pin->data || !runtime) return bad_argument("no pin to let go");
  access::Window window{static_cast<std::byte*>(pin->data), pin->bytes,
                        FrameId(static_cast<uint32_t>(pin->reserved))};
  return runtime->engine().release(window) ? 0 : bad_argument("this thread holds no pin");
}
