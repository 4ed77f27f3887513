#include "process/fault_stack.h"

#include <pthread.h>

#include <cstddef>

#include "base/in_runtime.h"
#include "platform/handler_stacks.h"
#include "platform/signal_frame.h"

namespace spw::process {

namespace {

struct FaultStack {
  std::byte* lowest = nullptr;
  bool is_busy = false;

  bool holds(const void* address) const {
    const auto* at = static_cast<const std::byte*>(address);
    return lowest != nullptr && at >= lowest && at < lowest + platform::HandlerStacks::kStackBytes;
  }
};

platform::HandlerStacks* g_stacks = nullptr;  // never deleted: threads may fault until the process is gone
pthread_key_t g_key;
constinit thread_local FaultStack t_stack;

void give_stack_back(void* stack) {
  InRuntime guard;
  t_stack.lowest = nullptr;
  g_stacks->give_back(static_cast<std::byte*>(stack));
}

// A thread's first fault.
[[gnu::noinline]] bool take_stack() {
  t_stack.lowest = g_stacks->take();
  return t_stack.lowest != nullptr && pthread_setspecific(g_key, t_stack.lowest) == 0;
}

}  // namespace

Status prepare_fault_stacks() {
  if (g_stacks != nullptr) return {};
  if (const int error = pthread_key_create(&g_key, &give_stack_back); error != 0)
    return Status(error, "cannot make a key for the stacks of faults");
  g_stacks = new platform::HandlerStacks;
  return {};
}

bool call_on_fault_stack(bool (*call)(void*), void* argument, const ucontext_t& frame) {
  FaultStack& stack = t_stack;
  if (stack.is_busy) {
    // Nested. Its frame may be elsewhere, on an alternate stack, though what it interrupted is here.
    std::byte* below = platform::free_below(frame);
    if (stack.holds(&frame) || !stack.holds(below)) return call(argument);
    return platform::call_on_stack(below, call, argument, frame);
  }
  if (stack.lowest == nullptr && !take_stack()) [[unlikely]]
    return call(argument);
  stack.is_busy = true;
  const bool result =
      platform::call_on_stack(stack.lowest + platform::HandlerStacks::kStackBytes, call, argument, frame);
  stack.is_busy = false;
  return result;
}

}  // namespace spw::process
