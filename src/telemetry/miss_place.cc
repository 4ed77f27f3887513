#include "telemetry/miss_place.h"

// Of the library, or the test program, that this is linked into, by its linker.
extern "C" {
[[gnu::visibility("hidden")]] extern const char __ehdr_start[];
[[gnu::visibility("hidden")]] extern const char etext[];
}

namespace spw::telemetry {

namespace {

// Between two frames of one stack.
constexpr uintptr_t kFrameBytesMax = 256 * 1024;

constinit thread_local uintptr_t t_faulting = 0;

struct Frame {
  const Frame* caller;
  uintptr_t returns_to;
};

bool is_here(uintptr_t code) {
  return code >= reinterpret_cast<uintptr_t>(__ehdr_start) && code < reinterpret_cast<uintptr_t>(etext);
}

}  // namespace

FaultPlace::FaultPlace(uintptr_t instruction) : before_(t_faulting) { t_faulting = instruction; }
FaultPlace::~FaultPlace() { t_faulting = before_; }

[[gnu::noinline]] uintptr_t miss_place() {
  if (t_faulting != 0) return t_faulting;
  const auto* frame = static_cast<const Frame*>(__builtin_frame_address(0));
  for (int i = 0; i < kFramesMax; ++i) {
    if (!is_here(frame->returns_to)) return frame->returns_to;
    const uintptr_t step = reinterpret_cast<uintptr_t>(frame->caller) - reinterpret_cast<uintptr_t>(frame);
    if (step == 0 || step > kFrameBytesMax || step % alignof(Frame) != 0) return 0;
    frame = frame->caller;
  }
  return 0;
}

}  // namespace spw::telemetry
