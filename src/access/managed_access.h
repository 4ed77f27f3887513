// How layers that do not translate by themselves (interposed libc functions, the public API) touch managed
// memory: block by block, through pinned windows. Both engines implement it, process/ hands it out.
//
// Threads: any; a window belongs to the thread that pinned it and is unpinned by that thread.
// Limits: a thread holds at most kWindowsPerThread windows at a time, and between the pin and the unpin of one it opens
// fewer than SPW_STABLE_TRANSLATIONS others and runs no code of the program. (So the translated engine needs no hold
// for it: abi.h's validity rule is enough.)
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cache/cache.h"

namespace spw::access {

inline constexpr unsigned kWindowsPerThread = 4;

// [data, data + bytes) are the bytes at a managed address, up to the end of its block at most.
struct Window {
  std::byte* data = nullptr;
  size_t bytes = 0;
  FrameId frame = kNoFrame;
};

// Where a signal handler runs: below `frame`, on the alternate stack [begin, end) or, without one, on that of the code
// it interrupted, whose stack pointer was `interrupted`.
struct HandlerStack {
  uintptr_t frame = 0;
  uintptr_t begin = 0, end = 0;
  uintptr_t interrupted = 0;

  // Code whose stack pointer is `now` runs after the handler was left, by a jump that nobody told of.
  bool is_left(uintptr_t now) const { return now > frame || now < begin || (end != 0 && now >= end); }
};

class ManagedAccess {
 public:
  virtual ~ManagedAccess() = default;
  // `address` is managed; 0 < result.bytes <= max_bytes. kOverwrite only when the caller overwrites all of
  // [address, address + max_bytes): blocks that range covers wholly are then not read first. Reports I/O errors itself.
  virtual Window pin(uintptr_t address, size_t max_bytes, cache::Access access) = 0;
  virtual void unpin(const Window& window) = 0;
  // Keeps the block of `address` in memory until let_go(*window), for a thread that is
  // about to sleep in the kernel at an object in it. False: not needed, or as many are
  // kept as may be, or it cannot be accessed so. kWrite: the kernel may store to it.
  virtual bool keep(uintptr_t /*address*/, Window* /*window*/, cache::Access) { return false; }
  virtual void let_go(const Window&) {}
  // The program changes the access rights of a range (PROT_*), which its pages will have, wherever its bytes are now:
  // what mprotect() would return, 0 or an error, or nothing where that is to be called.
  virtual std::optional<int> program_protects(uintptr_t /*address*/, size_t /*bytes*/, int /*protection*/) {
    return std::nullopt;
  }
  // The rights of the byte at `begin`, and in `*end` how far they are the same, at most what it was.
  virtual int program_rights(uintptr_t /*begin*/, uintptr_t* /*end*/) const { return PROT_READ | PROT_WRITE; }
  // What of the range is in memory is at its own address, and nothing is elsewhere from now on: for who uses raw
  // addresses and cannot be told when they end.
  virtual void keep_in_place(uintptr_t /*address*/, size_t /*bytes*/) {}
  // What is in memory of them, and stays so, is accessed without a fault.
  virtual void keep_open(uintptr_t /*address*/, size_t /*bytes*/) {}
  // The program asks for huge pages in the range, or for none: so be it for as long as the kernel has the memory alone.
  virtual void advise_huge_pages(uintptr_t /*address*/, size_t /*bytes*/, bool /*wanted*/) {}
  // As memmove, of kFewBytesMax bytes at most; either pointer may be managed or not. False: not done, by this engine.
  virtual bool copy_few(void*, const void*, size_t) { return false; }
  // A signal handler of the program begins in this thread, which is outside of the runtime:
  // what the interrupted code translated stays valid whatever the handler does. Returns what
  // handler_ends() takes, which is not called if the handler is left by a jump; less than 0:
  // too many handlers interrupt each other, and this one has to wait. Async-signal-safe.
  virtual int handler_begins(const HandlerStack&) { return 0; }
  virtual void handler_ends(int) {}
};

}  // namespace spw::access
