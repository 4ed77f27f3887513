#include "platform/handler_stacks.h"

#include <cerrno>

#include "base/units.h"
#include "platform/memory.h"
#include "platform/own_addresses.h"
#include "platform/raw_calls.h"

namespace spw::platform {

namespace {

void drop(std::byte* stack) { unmap(stack - kMmuPageBytes, HandlerStacks::kStackBytes + kMmuPageBytes); }

}  // namespace

HandlerStacks::~HandlerStacks() {
  for (Atomic<std::byte*>& slot : pooled_)
    if (std::byte* stack = slot.exchange_acquire(nullptr)) drop(stack);
}

std::byte* HandlerStacks::take() {
  for (Atomic<std::byte*>& slot : pooled_) {
    if (slot.load_relaxed() == nullptr) continue;
    if (std::byte* stack = slot.exchange_acquire(nullptr)) return stack;
  }
  constexpr size_t kBytes = kStackBytes + kMmuPageBytes;
  const uintptr_t own = own_addresses().take(kBytes, kMmuPageBytes);
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  void* got = raw::mmap(reinterpret_cast<void*>(own), kBytes, PROT_READ | PROT_WRITE,
                        own == 0 ? kFlags : kFlags | MAP_FIXED, -1, 0);
  if (got == MAP_FAILED) {
    if (own != 0) unmap(reinterpret_cast<void*>(own), kBytes);
    return nullptr;
  }
  if (raw::mprotect(got, kMmuPageBytes, PROT_NONE) != 0) {
    unmap(got, kBytes);
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
  drop(stack);
  errno = saved_errno;
}

}  // namespace spw::platform
