// What a program has said of managed memory that outlasts the call: that a child is not to have it, or is to find
// zeros, that a core dump leaves it out, that it is locked in memory.
//
// What no core dump is to have may be a secret: it is held in memory, as what is locked, up to kHeldBytesMax; beyond
// that a line says that it is spilled in the clear. With --encrypt nothing is.
//
// So is the stack of a thread that lies in managed memory (process/thread_stacks.h).
//
// What is locked or held is pinned in the cache in pieces of whole blocks; a block with pages of two pieces counts
// twice. The kernel's own rules otherwise: locks do not nest, are not inherited, and end with the mapping.
// Invariant: what no mapping and no object has is not marked.
// Threads: any; one mutex, which a fork takes before it looks at the memory. Limits: half of the frames can be locked
// (process/pinned_ranges.h); RLIMIT_MEMLOCK counts managed and other memory apart.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libc/managed.h"

namespace spw::libc {

// What libsodium, OpenSSL and GnuPG keep their keys in has tens of KiB.
inline constexpr uint64_t kHeldBytesMax = uint64_t{1} << 20;

enum Mark : uint8_t {
  kWipeOnFork = 1,
  kNotInChild = 2,
  kNotDumped = 4,
  kLocked = 8,
  kHeld = 16,
  kStack = 32,
  kPinned = kLocked | kHeld | kStack,
};

// Whether any of [begin, end) is marked so.
bool is_any_marked(uintptr_t begin, uintptr_t end, Mark mark);
// Where the first locked page of [begin, end) is; `end`: there is none.
uintptr_t unlocked_until(uintptr_t begin, uintptr_t end);
// None of kPinned.
void set_mark(uintptr_t begin, uintptr_t end, Mark mark, bool is_set);
// 0, or ENOMEM, or EPERM. The range has no hole.
int lock_in_memory(const Context& c, uintptr_t begin, uintptr_t end);
void unlock_in_memory(const Context& c, uintptr_t begin, uintptr_t end);
// Of anonymous memory: no longer than until let_go() is it spilled, if there is room. One warning where there is none.
void hold_in_memory(const Context& c, uintptr_t begin, uintptr_t end);
void let_go(const Context& c, uintptr_t begin, uintptr_t end);
// Stays in memory until release_stack(), or it is unmapped; false: there is no room. The range has no hole.
bool keep_stack(const Context& c, uintptr_t begin, uintptr_t end);
void release_stack(const Context& c, uintptr_t begin, uintptr_t end);
// It is unmapped, or its contents go elsewhere.
void remove_marks(const Context& c, uintptr_t begin, uintptr_t end);
// The marks of [from, from + bytes) are those of `to`, too, but for locks; what is not dumped is held there, too.
void copy_marks(const Context& c, uintptr_t from, uintptr_t to, uint64_t bytes);

void lock_marks_for_fork();
void unlock_marks_after_fork();
// In a child that has its parent's memory, in place of unlock_marks_after_fork(); when it can be used.
void marks_in_child();
// When blocks can be pinned there, and before any is evicted.
void hold_what_is_inherited(const Context& c);

int lock_pages(const void* address, size_t bytes, unsigned flags);
int unlock_pages(const void* address, size_t bytes);
// mlockall() is refused where memory is managed (ENOMEM): what is beyond the cap cannot be locked, and the kernel would
// begin with all of managed space.
int lock_all(int flags);
int unlock_all();
// mincore(): what is managed and in memory, but not at its own address, counts as not there.
int resident_pages(void* address, size_t bytes, unsigned char* out);

}  // namespace spw::libc
