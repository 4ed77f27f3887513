#include "platform/signal_frame.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/atomic.h"

extern "C" {
bool spw_call_on_stack(bool (*call)(void*), void* argument, std::byte* top, const std::byte* copied_end);
[[noreturn]] void spw_resume(const ucontext_t* frame, uint64_t state_components);
}

namespace spw::platform {

namespace {

// struct _fpx_sw_bytes of <asm/sigcontext.h>, which cannot be included beside libc's <signal.h>: what the kernel says
// of the extended state that it saved, in the bytes of the FXSAVE image that the processor leaves to software.
struct SavedState {
  uint32_t magic;
  uint32_t bytes;
  uint64_t components;  // as in XCR0
};
constexpr size_t kSavedStateAt = 464;
constexpr uint32_t kMagic = 0x46505853;      // FP_XSTATE_MAGIC1
constexpr size_t kFxsaveBytes = 512;         // without extended state
constexpr uint64_t kHasExtendedState = 0x1;  // uc_flags: UC_FP_XSTATE
constexpr unsigned kAutoDisarm = 1u << 31;   // SS_AUTODISARM
constexpr size_t kRedZoneBytes = 128;
// RFLAGS: single steps, which IRET would begin one instruction early; nested tasks, which it refuses.
constexpr greg_t kTrapFlag = 1 << 8, kNestedTask = 1 << 14;
constexpr unsigned kKeysComponent = 9;  // of extended state: PKRU
constexpr uint64_t kKeysBit = uint64_t{1} << kKeysComponent;

// A sanitizer's handler around ours has to end.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kIsSanitized = false;
#endif

enum : uint32_t { kNotPrepared = 0, kNoKeys = 1 };
// Where PKRU lies in what XSAVE writes, or one of the above.
Atomic<uint32_t> g_keys_at{kNotPrepared};

SavedState saved_state(const ucontext_t& frame) {
  SavedState state;
  std::memcpy(&state, reinterpret_cast<const std::byte*>(frame.uc_mcontext.fpregs) + kSavedStateAt,
              sizeof state);
  if ((frame.uc_flags & kHasExtendedState) == 0 || state.magic != kMagic) state = {0, kFxsaveBytes, 0};
  return state;
}

uint32_t key_rights() {
  uint32_t rights, high;
  asm volatile("rdpkru" : "=a"(rights), "=d"(high) : "c"(0));
  return rights;
}

// The kernel begins a handler with the rights that a thread begins with: others than those are the program's doing.
bool has_other_rights(const ucontext_t& frame, const SavedState& state) {
  const uint32_t at = g_keys_at.load_relaxed();
  if (at == kNoKeys) return false;
  const auto* area = reinterpret_cast<const std::byte*>(frame.uc_mcontext.fpregs);
  uint64_t not_initial;  // the header's bits of components that are not in their initial state
  std::memcpy(&not_initial, area + kFxsaveBytes, sizeof not_initial);
  uint32_t saved = 0;
  if ((not_initial & kKeysBit) != 0) std::memcpy(&saved, area + at, sizeof saved);
  return (state.components & kKeysBit) == 0 || saved != key_rights();
}

bool has_shadow_stack() {
  uint64_t pointer = 0;
  asm volatile("rdsspq %0" : "+r"(pointer));  // leaves it where there is none
  return pointer != 0;
}

// As this code has them: 64-bit.
bool has_usual_segments(const ucontext_t& frame) {
  uint16_t code, stack, saved[4];  // cs, gs, fs, ss
  asm("mov %%cs, %0" : "=r"(code));
  asm("mov %%ss, %0" : "=r"(stack));
  std::memcpy(saved, &frame.uc_mcontext.gregs[REG_CSGSFS], sizeof saved);
  return saved[0] == code && saved[3] == stack;
}

// The one that was there when the signal came.
bool is_on_alternate_stack(const ucontext_t& frame, uintptr_t address) {
  return address - reinterpret_cast<uintptr_t>(frame.uc_stack.ss_sp) < frame.uc_stack.ss_size;
}

using KernelMask = uint64_t;
constexpr KernelMask bit_of(int signal) { return KernelMask{1} << (signal - 1); }
constexpr KernelMask kAll = ~KernelMask{0};

void set_mask(KernelMask mask, KernelMask* before) {
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, before, sizeof mask);
}

struct Call {
  bool (*call)(void*);
  void* argument;
};

bool call_without_alternate_stack(void* wanted) {
  const auto& call = *static_cast<const Call*>(wanted);
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  ::syscall(SYS_sigaltstack, &none, nullptr);  // not allowed before: the thread was on it
  set_mask(kAll & ~bit_of(SIGSEGV) & ~bit_of(SIGBUS), nullptr);
  return call.call(call.argument);
}

// No signal comes between the switch and the end of the alternate stack.
bool leave_alternate_stack(std::byte* top, Call call, const ucontext_t& frame) {
  KernelMask before = 0;
  set_mask(kAll, &before);
  const bool result = spw_call_on_stack(&call_without_alternate_stack, &call, top, nullptr);
  ::syscall(SYS_sigaltstack, &frame.uc_stack, nullptr);
  set_mask(before, nullptr);
  return result;
}

}  // namespace

void prepare_to_resume() {
  constexpr unsigned kKeysEnabled = 1 << 4;  // OSPKE
  unsigned a = 0, b = 0, c = 0, d = 0;
  uint32_t at = kNoKeys;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & kKeysEnabled) != 0)
    if (__get_cpuid_count(0xD, kKeysComponent, &a, &b, &c, &d) != 0) at = b;
  g_keys_at.store_relaxed(at);
}

bool may_resume(const ucontext_t& frame) {
  if (kIsSanitized || g_keys_at.load_relaxed() == kNotPrepared || frame.uc_mcontext.fpregs == nullptr)
    return false;
  const SavedState state = saved_state(frame);
  return state.components != 0 && (static_cast<unsigned>(frame.uc_stack.ss_flags) & kAutoDisarm) == 0 &&
         (frame.uc_mcontext.gregs[REG_EFL] & (kTrapFlag | kNestedTask)) == 0 && has_usual_segments(frame) &&
         !has_shadow_stack() && !has_other_rights(frame, state);
}

void resume(const ucontext_t& frame) { spw_resume(&frame, saved_state(frame).components & ~kKeysBit); }

std::byte* free_below(const ucontext_t& frame) {
  return std::bit_cast<std::byte*>(frame.uc_mcontext.gregs[REG_RSP]) - kRedZoneBytes;
}

bool call_on_stack(std::byte* top, bool (*call)(void*), void* argument, const ucontext_t& frame) {
  if (!is_on_alternate_stack(frame, reinterpret_cast<uintptr_t>(&frame)))
    return spw_call_on_stack(call, argument, top, nullptr);
  if (is_on_alternate_stack(frame, static_cast<uintptr_t>(frame.uc_mcontext.gregs[REG_RSP])))
    return leave_alternate_stack(top, {call, argument}, frame);
  const auto* end = static_cast<const std::byte*>(frame.uc_stack.ss_sp) + frame.uc_stack.ss_size;
  return spw_call_on_stack(call, argument, top, end);
}

}  // namespace spw::platform
