#include "platform/handler_stacks.h"

#include <cerrno>

#include "base/units.h"
#include "platform/raw_calls.h"

namespace spw::platform {

namespace {

void unmap(std::byte* stack) {
  raw::munmap(stack - kMmuPageBytes, HandlerStacks::kStackBytes + kMmuPageBytes);
}

}  // namespace

HandlerStacks::~HandlerStacks() {
  for (Atomic<std::byte*>& slot : pooled_)
    if (std::byte* stack = slot.exchange_acquire(nullptr)) unmap(stack);
}

std::byte* HandlerStacks::take() {
  for (Atomic<std::byte*>& slot : pooled_) {
    if (slot.load_relaxed() == nullptr) continue;
    if (std::byte* stack = slot.exchange_acquire(nullptr)) return stack;
  }
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  void* got = raw::mmap(nullptr, kStackBytes + kMmuPageBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (got == MAP_FAILED) return nullptr;
  if (raw::mprotect(got, kMmuPageBytes, PROT_NONE) != 0) {
    raw::munmap(got, kStackBytes + kMmuPageBytes);
    return nullptr;
  }
  return static_cast<std::byte*>(got) + kMmuPageBytes;
}

void HandlerStacks::give_back(std::byte* stack) {
  for (Atomic<std::byte*>& slot : pooled_) {
    std::byte* none = nullptr;
    if (slot.load_relaxed() == nullptr && slot.cas_strong_acq_rel(none, stack)) return;
  }
  const int saved_errno = errno;
  unmap(stack);
  errno = saved_errno;
}

}  // namespace spw::platform
