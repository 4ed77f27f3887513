// Addresses for mappings of the runtime itself, reserved once: none of them lies where the program has just unmapped
// something.
//
// A program may unmap a range and then put something else there by MAP_FIXED (a reserved range that is given out in
// parts; an aligned piece of a larger one). As long as nobody else maps memory that is safe. The runtime does so at any
// moment, in threads of its own and in page faults, and the kernel would give it just that hole.
//
// One bit a page, at the beginning of the range, says what is taken. Bits are set before a range is used and cleared
// after it has become unused again; who finds one set by another has his own cleared and looks further. So a range has
// one owner. A child of fork() has the bits as they were; what another thread was about to take is lost there, which
// are addresses and no memory.
//
// Before reserve(), where the program's address space has a limit (RLIMIT_AS), or where all is taken, there are none to
// be had, and the kernel chooses. So it does for io_uring's rings, whose address nobody else may choose (EINVAL), for
// what malloc maps in the runtime's threads, and for stacks of threads.
//
// Threads: any; nobody waits. Async-signal-safe.
#pragma once

#include <cstdint>

#include "base/atomic.h"
#include "base/units.h"

namespace spw::platform {

class OwnAddresses {
 public:
  static constexpr uint64_t kBytes = 16ull << 30;
  // A larger mapping is made once, at the start.
  static constexpr uint64_t kMappingBytesMax = 64ull << 20;

  constexpr OwnAddresses() = default;

  // Once, where the runtime begins, before there are threads that take any; again: nothing more.
  void reserve();
  // A range without access or memory, or 0. `bytes`: rounded up to whole MMU pages; `alignment_bytes`: a power of two.
  uintptr_t take(uint64_t bytes, uint64_t alignment_bytes);
  // Whether it was taken from here; then nothing is mapped there any more, and it can be taken again.
  bool give_back(uintptr_t address, uint64_t bytes);
  // The same of what has been moved away. The kernel may have given the place to somebody else by now, who keeps it.
  void give_back_unmapped(uintptr_t address, uint64_t bytes);

 private:
  static constexpr uint64_t kPages = kBytes / kMmuPageBytes;
  static constexpr uint64_t kBits = 64;
  static constexpr uint64_t kTableBytes = kPages / 8;

  using Word = Atomic<uint64_t>;  // acq_rel
  Word& word(uint64_t index) const { return reinterpret_cast<Word*>(base_.load_relaxed())[index]; }
  // The first page from `page` on whose bit is that way; `end`: there is none before.
  uint64_t find(uint64_t page, uint64_t end, bool is_taken) const;
  bool claim(uint64_t page, uint64_t pages);
  void clear(uint64_t page, uint64_t pages);
  void clear_from(uintptr_t address, uint64_t bytes);
  bool has_taken(uintptr_t address) const;
  static uint64_t mask(uint64_t word, uint64_t page, uint64_t end);

  Atomic<uintptr_t> base_{0};   // acquire, release: the reservation is there, and its table; 0: there is none
  Atomic<uint64_t> lowest_{0};  // relaxed: where to begin to look
};

OwnAddresses& own_addresses();

}  // namespace spw::platform
