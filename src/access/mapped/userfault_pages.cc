#include "access/mapped/userfault_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/check.h"
#include "base/units.h"
#include "platform/memory.h"
#include "platform/raw_calls.h"

namespace spw::access {

using platform::Protection;

Result<std::unique_ptr<PlacedPages>> UserFaultPages::create(const platform::UserFault& faults,
                                                            std::byte* base, uint64_t bytes) {
  if (Status s = platform::protect(base, bytes, Protection::kReadWrite); !s) return s;
  if (Status s = faults.register_range(base, bytes); !s) return s;
  if (Status s = faults.unregister_range(base, bytes); !s) return s;
  if (Status s = platform::protect(base, bytes, Protection::kNone); !s) return s;
  return std::unique_ptr<PlacedPages>(new UserFaultPages(faults, base, bytes));
}

// Live ranges keep the access rights they have, which the program may have chosen.
Status UserFaultPages::begin(uint64_t used_bytes) {
  if (Status s = faults_.register_range(base_, bytes_); !s) return s;
  return platform::protect(base_ + used_bytes, bytes_ - used_bytes, Protection::kReadWrite);
}

Status UserFaultPages::renew(std::byte* address, uint64_t bytes) {
  if (Status s = faults_.register_range(address, bytes); !s) return s;
  std::lock_guard lock(rights_mutex_);
  if (Status s = platform::protect(address, bytes, Protection::kReadWrite); !s) return s;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  return program_rights_.give(begin, begin + bytes, ~0);  // nothing is there that could be written
}

Status UserFaultPages::limit_alias(std::byte* address, uint64_t bytes, int rights) {
  std::lock_guard lock(rights_mutex_);
  const auto begin = reinterpret_cast<uintptr_t>(address);
  return program_rights_.give(begin, begin + bytes, rights);
}

Status UserFaultPages::begin_writeback(std::byte* address, uint64_t bytes) {
  if (Status s = faults_.write_protect(address, bytes, true); !s) return s;
  fence_seq_cst();
  if (!program_rights_.any()) return {};
  std::lock_guard lock(rights_mutex_);
  if (!program_rights_.any()) return {};  // any longer: who chooses some again waits for this write
  const auto begin = reinterpret_cast<uintptr_t>(address);
  held_[begin] = begin + bytes;
  return apply_rights(begin, begin + bytes);
}

// It may have begun when nobody had chosen rights. Where the right to read cannot be taken away again, it stays.
void UserFaultPages::end_writeback(std::byte* address, uint64_t bytes) {
  if (!program_rights_.any()) return;
  std::lock_guard lock(rights_mutex_);
  const auto begin = reinterpret_cast<uintptr_t>(address);
  let_go(begin, begin + bytes);
  (void)apply_rights(begin, begin + bytes).is_ok();
}

// A part of one piece that is held, or of none.
void UserFaultPages::let_go(uintptr_t begin, uintptr_t end) {
  auto held = held_.upper_bound(begin);
  if (held == held_.begin() || std::prev(held)->second <= begin) return;
  --held;
  const auto [first, last] = *held;
  held_.erase(held);
  if (first < begin) held_[first] = begin;
  if (end < last) held_[end] = last;
}

// Without rights nothing is held: who chooses some waits for what is being written.
void UserFaultPages::record(uintptr_t begin, uintptr_t end, int rights) {
  program_rights_.set(begin, end, rights);
  if (!program_rights_.any()) held_.clear();
}

// Calls visit(from, to, rights) for the parts of [begin, end) that the program may not read, cut where what is held
// begins and ends; `rights`: those that they are to have.
template <class Visit>
Status UserFaultPages::for_each_hidden(uintptr_t begin, uintptr_t end, Visit visit) const {
  bool is_done = program_rights_.for_each(begin, end, [&](uintptr_t from, uintptr_t to, int rights) {
    while ((rights & PROT_READ) == 0 && from < to) {
      auto held = held_.upper_bound(from);
      const uintptr_t next = held == held_.end() ? to : std::min(to, held->first);
      const bool is_held = held != held_.begin() && std::prev(held)->second > from;
      const uintptr_t stop = is_held ? std::min(to, std::prev(held)->second) : next;
      if (!visit(from, stop, is_held ? rights | PROT_READ : rights)) return false;
      from = stop;
    }
    return true;
  });
  return is_done ? Status() : Status(errno, "cannot change what the program may read");
}

Status UserFaultPages::apply_rights(uintptr_t begin, uintptr_t end) const {
  return for_each_hidden(begin, end, [](uintptr_t from, uintptr_t to, int rights) {
    return platform::raw::mprotect(reinterpret_cast<void*>(from), to - from, rights) == 0;
  });
}

// The program's rights, and the right to read where the program has it now: it may be being written.
int UserFaultPages::let_read_for_now(uintptr_t begin, uint64_t bytes, int rights) const {
  if (begin % kMmuPageBytes != 0) return EINVAL;
  const auto give = [](uintptr_t from, uintptr_t to, int given) {
    return platform::raw::mprotect(reinterpret_cast<void*>(from), to - from, given) == 0;
  };
  const uintptr_t end = begin + round_up(bytes, kMmuPageBytes);
  const bool is_done = program_rights_.for_each(begin, end, [&](uintptr_t from, uintptr_t to, int now) {
    return (now & PROT_READ) == 0 || give(from, to, rights | PROT_READ);
  });
  if (!is_done) return errno;
  const Status hidden = for_each_hidden(begin, end, [&](uintptr_t from, uintptr_t to, int now) {
    return give(from, to, rights | (now & PROT_READ));
  });
  return hidden.error();
}

int UserFaultPages::program_protects(uintptr_t address, uint64_t bytes, int protection,
                                     const std::function<void()>& await_writes) {
  const uintptr_t end = address + round_up(bytes, kMmuPageBytes);
  {
    std::lock_guard lock(rights_mutex_);
    if (const int error = let_read_for_now(address, bytes, protection); error != 0) return error;
    record(address, end, protection);
  }
  if ((protection & PROT_READ) != 0) return 0;
  fence_seq_cst();
  await_writes();
  std::lock_guard lock(rights_mutex_);
  return apply_rights(address, end).error();
}

void UserFaultPages::forget_rights(uintptr_t begin, uintptr_t end) {
  if (!program_rights_.any()) return;
  std::lock_guard lock(rights_mutex_);
  (void)program_rights_.for_each(begin, end, [](uintptr_t from, uintptr_t to, int rights) {
    if (rights != ProgramRights::kUsual)
      SPW_CHECK(platform::protect(reinterpret_cast<void*>(from), to - from, Protection::kReadWrite).is_ok());
    return true;
  });
  record(begin, end, ProgramRights::kUsual);
}

}  // namespace spw::access
