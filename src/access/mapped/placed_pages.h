// The pages of managed space at their own addresses: who makes them fault, and who puts them there and takes them away.
// userfaultfd does (userfault_pages.h), or, where that is forbidden, access rights do (protected_pages.h).
//
// A block's pages are absent, readable or writable. An access that they do not admit is a fault, which the engine
// serves. Whoever calls has the block to himself, as cache::FrameSource promises, unless it says otherwise.
// Threads: any. Ordering: what was stored to a source before copy() is seen by whoever reads the pages afterwards.
// Limits: addresses and sizes are multiples of a block; a call is about one region's blocks.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "platform/userfault.h"

namespace spw::access {

// What an access found that is not, or was not, admitted.
enum class Admitted : uint8_t {
  kYes,      // it may be tried again
  kNot,      // the block is absent, or is to be stored to for the first time: the cache has to be asked
  kRefused,  // the program itself has taken the right away
};

class PlacedPages {
 public:
  virtual ~PlacedPages() = default;

  // From now on pages come to be there by the calls below alone. What is in [base, base + used_bytes) already stays,
  // and is to be adopted or renewed; once, while nobody else calls.
  virtual Status begin(uint64_t used_bytes) = 0;
  // Pages that are there, and nobody's so far, are a block's, which takes stores.
  virtual void adopt(std::byte* address, uint64_t bytes) = 0;
  // Fills absent pages of a block that is about to be adopted with zeros (from `zeros`).
  virtual Status complete(std::byte* address, const std::byte* zeros, uint64_t bytes) = 0;
  // Nothing is there any more: the caller has given the pages back, or mapped the range anew.
  virtual Status renew(std::byte* address, uint64_t bytes) = 0;

  // Absent blocks are there, with this contents, all at once.
  virtual Status copy(std::byte* address, const std::byte* from, uint64_t bytes, bool is_writable) = 0;
  // Whether nobody, not even a fork, finds a page half done meanwhile.
  virtual bool copies_pages_at_once() const { return true; }
  virtual Status allow_stores(std::byte* address, uint64_t bytes) = 0;
  // From begin_writeback() to end_writeback(), which may be of a part, stores are noticed, and the kernel may read what
  // is_readable(): what the program may not read is copied out, or is readable from let_read() to end_writeback().
  // is_readable() is asked when the block is being written, which is seen by program_protects(): that it is readable
  // holds until it has been written.
  virtual bool is_readable(const std::byte* /*address*/, uint64_t /*bytes*/) const { return true; }
  virtual Status copy_out(std::byte* to, const std::byte* address, uint64_t bytes) {
    std::memcpy(to, address, bytes);
    return {};
  }
  virtual Status let_read(std::byte* /*address*/, uint64_t /*bytes*/) { return {}; }
  virtual Status begin_writeback(std::byte* address, uint64_t bytes) = 0;
  virtual void end_writeback(std::byte* address, uint64_t bytes) = 0;
  // Pages of blocks leave for `to`: all, or none. Only where lifts() says so of every one, and of none that is all
  // zero.
  virtual bool lifts(const std::byte* /*address*/, uint64_t /*bytes*/) const { return false; }
  virtual bool lift(std::span<const iovec> /*pages*/, std::span<const iovec> /*to*/) { return false; }
  // They are absent from now on.
  virtual void release(std::span<const iovec> blocks) = 0;

  // While it is kept open, the kernel may access what is there of the block. The caller has it pinned.
  virtual void keep_open(std::byte* /*address*/) {}
  virtual void let_close(std::byte* /*address*/) {}
  // The program may access what is there of the blocks without a fault, until it is released or written. The caller has
  // them pinned.
  virtual void keep_open_until_released(std::byte* /*address*/, uint64_t /*bytes*/) {}
  // Where a fault is a SIGSEGV, and nothing else: asked first. Any access, at any time.
  virtual Admitted admit(uintptr_t /*address*/, bool /*is_store*/) { return Admitted::kNot; }
  // What may be left where it is rather than be placed, is better left there.
  virtual bool is_crowded() const { return false; }
  // The program gives pages other rights (PROT_*), as by mprotect(): 0 or an error. Not while begin() is.
  // `await_writes` waits until what is being written of them has been; called without a lock, or not at all.
  virtual int program_protects(uintptr_t address, uint64_t bytes, int protection,
                               const std::function<void()>& await_writes) = 0;
  // Whether the rights that the program has chosen admit the access.
  virtual bool program_allows(uintptr_t address, bool is_store) const = 0;
  // Those at `begin` (PROT_*), and in `*end` how far they are the same, at most what it was.
  virtual int program_rights(uintptr_t begin, uintptr_t* end) const = 0;
  // Of a mapping over the range that has `rights` (PROT_*), the program's rights are taken into account.
  virtual Status limit_alias(std::byte* address, uint64_t bytes, int rights) = 0;
  // The range is handed out anew: it has the rights that memory has as a rule.
  virtual void forget_rights(uintptr_t begin, uintptr_t end) = 0;
  virtual bool may_execute(uintptr_t address) const = 0;
  // Around a fork no rights change.
  virtual void lock_for_fork() {}
  virtual void unlock_after_fork() {}
  // The same, when no block is being moved any more.
  virtual void lock_rights_for_fork() = 0;
  virtual void unlock_rights_after_fork() = 0;
  // In a forked child, of its parent's: the same range, for begin() if this one had begun. What is there is there, and
  // the program's rights are as they were. `faults`: its descriptor, if there is one.
  virtual Result<std::unique_ptr<PlacedPages>> inherit(const platform::UserFault& faults) = 0;
};

}  // namespace spw::access
