// userfaultfd: faults of a range of addresses, handed to this process to serve.
//
// A missing fault is an access to a page that is not there; a write-protect fault is a store to a page that
// write_protect() or copy(.., kProtected) made read-only. Both leave the faulting thread asleep until its page is
// copied in, made writable, or woken.
// Threads: any, at the same time; one event is read by one of them. Ordering: what a thread wrote to the source before
// copy() is seen by whoever reads the pages afterwards (the kernel orders the page table).
// Lifetime: the ranges are unregistered when the descriptor closes; threads asleep then fault again, on plain memory.
// Limits: addresses and sizes are multiples of the MMU page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "platform/file.h"

namespace spw::platform {

struct FaultEvent {
  uintptr_t address = 0;  // page aligned
  uint32_t thread = 0;    // the kernel's id of the faulting thread
  bool is_store = false;
  bool is_protected = false;  // a write-protect fault, else a missing one
};

enum class FaultScope : uint8_t {
  kAll,       // faults of system calls too
  kUserOnly,  // system calls that meet a missing page fail with EFAULT (unprivileged_userfaultfd = 0)
};

// How a fault reaches the process.
enum class FaultDelivery : uint8_t {
  kEvents,  // wait_events() tells another thread, and the faulting one sleeps
  kSignal,  // the faulting thread gets SIGBUS (BUS_ADRERR); nobody sees faults of system calls
};

class UserFault {
 public:
  UserFault() = default;
  // Takes faults of system calls too where the kernel lets us (or /dev/userfaultfd
  // does) and `delivery` can. EPERM, ENOSYS where it is forbidden; ENOTSUP where write
  // protection is missing. `scope_wanted`: kUserOnly does not try for more (for tests).
  static Result<UserFault> open(FaultScope scope_wanted = FaultScope::kAll,
                                FaultDelivery delivery = FaultDelivery::kEvents);

  // A descriptor of userfaultfd with these features of the kernel's and none of what this class serves. EPERM, ENOSYS
  // where it is forbidden, ENOTSUP where a feature is missing. `scope`: as wanted, and then as it is.
  static Result<File> open_with(uint64_t features, FaultScope* scope);

  bool is_open() const { return file_.is_open(); }
  FaultScope scope() const { return scope_; }
  FaultDelivery delivery() const { return delivery_; }
  int fd() const { return file_.fd(); }
  // The same one once more, which lives until both are gone.
  Result<UserFault> duplicate() const;

  Status register_range(void* address, uint64_t bytes) const;
  Status unregister_range(void* address, uint64_t bytes) const;

  // Takes up to events.size() of those that are there; never sleeps.
  size_t take_events(std::span<FaultEvent> events) const;
  // Sleeps until there are events and takes some; 0 once `wake_fd` is readable.
  size_t wait_events(std::span<FaultEvent> events, int wake_fd) const;

  // Fills missing pages from `source`, all or, with an error, a part of them. EEXIST: some were not missing.
  Status copy(void* address, const void* source, uint64_t bytes, bool is_protected) const;
  // Makes pages that are there read-only; or writable again, which wakes those who wait to store to them.
  Status write_protect(void* address, uint64_t bytes, bool is_protected) const;
  void wake(void* address, uint64_t bytes) const;

  // Whether memory can be moved (Linux 6.8). It is tried by open().
  bool moves() const { return moves_; }
  // The pages of [from, from + bytes), private memory of this process, to the missing ones at `to`, a registered range,
  // where they can be stored to at once; what was at `from` is missing then. A huge page, at addresses that are
  // multiples of it, moves whole, for a microsecond, where no page table is left at `to` (Linux 6.14 takes those away
  // with the memory: advise kDontNeed). EBUSY: the kernel, or a forked child, has them, too. EEXIST, EINVAL: see above.
  Status move(void* to, void* from, uint64_t bytes) const;

 private:
  File file_;
  FaultScope scope_ = FaultScope::kAll;
  FaultDelivery delivery_ = FaultDelivery::kEvents;
  bool moves_ = false;
};

// Takes the ranges at the front off that follow each other, as one. There is a first.
iovec take_adjoining(std::span<const iovec>* ranges);

// Gives the memory of many ranges of this process back with as few calls as the kernel allows.
class RangeReleaser {
 public:
  enum class Calls : uint8_t { kAsKernelAllows, kOneByOne };  // the latter for tests
  explicit RangeReleaser(Calls calls = Calls::kAsKernelAllows);
  // Private memory: the pages are gone afterwards. Merges neighbours that follow each other in `ranges`.
  void release(std::span<const iovec> ranges) const;
  bool is_vectored() const { return vectored_; }

 private:
  File process_;
  bool vectored_ = false;
};

}  // namespace spw::platform
