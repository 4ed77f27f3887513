#include "access/mapped/userfault_pages.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>

#include "base/need.h"
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

// What was being written is no longer, here.
Result<std::unique_ptr<PlacedPages>> UserFaultPages::inherit(const platform::UserFault& faults) {
  std::unique_ptr<UserFaultPages> pages(new UserFaultPages(faults, base_, bytes_));
  pages->program_rights_.copy(program_rights_);
  for (const auto& [from, to] : held_)
    if (Status status = pages->apply_rights(from, to); !status) return status;
  for (const auto& [from, to] : awaited_)
    if (Status status = pages->apply_rights(from, to); !status) return status;
  return std::unique_ptr<PlacedPages>(std::move(pages));
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

bool UserFaultPages::is_readable(const std::byte* address, uint64_t bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  return program_rights_.allow_reads(begin, begin + bytes);
}

Status UserFaultPages::let_read(std::byte* address, uint64_t bytes) {
  std::lock_guard lock(rights_mutex_);
  if (!program_rights_.any()) return {};  // any longer: who chooses some again waits for this write
  const auto begin = reinterpret_cast<uintptr_t>(address);
  held_[begin] = begin + bytes;
  return apply_rights(begin, begin + bytes);
}

bool UserFaultPages::read_as_debugger(std::byte* to, const std::byte* from, uint64_t bytes) {
  std::lock_guard lock(rights_mutex_);
  if (!own_memory_.is_open()) {
    auto opened = platform::OwnMemory::open();
    if (!opened) return false;
    own_memory_ = std::move(*opened);
  }
  return own_memory_.read(to, from, bytes).is_ok();
}

Status UserFaultPages::copy_out(std::byte* to, const std::byte* address, uint64_t bytes) {
  if (read_as_debugger(to, address, bytes)) return {};
  // Which systems can forbid: it is readable for this moment.
  if (Status s = let_read(const_cast<std::byte*>(address), bytes); !s) return s;
  std::memcpy(to, address, bytes);
  end_writeback(const_cast<std::byte*>(address), bytes);
  return {};
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

// Whether the page at `from` is held or awaited; *end: how far that is so, at most what it was.
bool UserFaultPages::is_held_until(uintptr_t from, uintptr_t* end) const {
  const auto next = held_.upper_bound(from);
  bool is_held = next != held_.begin() && std::prev(next)->second > from;
  if (is_held)
    *end = std::min(*end, std::prev(next)->second);
  else if (next != held_.end())
    *end = std::min(*end, next->first);
  for (const auto& [first, last] : awaited_) {
    const bool is_in = first <= from && from < last;
    is_held |= is_in;
    if (is_in || first > from) *end = std::min(*end, is_in ? last : first);
  }
  return is_held;
}

// Gives each part of [begin, end) what choose(its recorded rights, whether it is held) says, if that says anything.
template <class Choose>
Status UserFaultPages::give(uintptr_t begin, uintptr_t end, Choose choose) const {
  const bool is_done = program_rights_.for_each(begin, end, [&](uintptr_t from, uintptr_t to, int rights) {
    while (from < to) {
      uintptr_t part_end = to;
      const bool is_held = is_held_until(from, &part_end);
      const std::optional<int> given = choose(rights, is_held);
      if (given && platform::raw::mprotect(reinterpret_cast<void*>(from), part_end - from, *given) != 0)
        return false;
      from = part_end;
    }
    return true;
  });
  return is_done ? Status() : Status(errno, "cannot change what the program may read");
}

// To what the program may not read: its rights, and the right to read while it is held.
Status UserFaultPages::apply_rights(uintptr_t begin, uintptr_t end) const {
  return give(begin, end, [](int rights, bool is_held) -> std::optional<int> {
    if ((rights & PROT_READ) != 0) return std::nullopt;
    return is_held ? rights | PROT_READ : rights;
  });
}

// The rights, and the right to read where the program has it now: it may be being written.
Status UserFaultPages::let_read_for_now(uintptr_t begin, uintptr_t end, int chosen) const {
  return give(begin, end, [chosen](int rights, bool is_held) -> std::optional<int> {
    return (rights & PROT_READ) != 0 || is_held ? chosen | PROT_READ : chosen;
  });
}

int UserFaultPages::program_protects(uintptr_t address, uint64_t bytes, int protection,
                                     const std::function<void()>& await_writes) {
  if (address % kMmuPageBytes != 0) return EINVAL;
  const uintptr_t end = address + round_up(bytes, kMmuPageBytes);
  {
    std::lock_guard lock(rights_mutex_);
    if (Status s = let_read_for_now(address, end, protection); !s) return s.error();
    record(address, end, protection);
    if ((protection & PROT_READ) != 0) return 0;
    awaited_.emplace_back(address, end);
  }
  fence_seq_cst();
  await_writes();
  std::lock_guard lock(rights_mutex_);
  awaited_.erase(std::ranges::find(awaited_, std::pair<uintptr_t, uintptr_t>{address, end}));
  return apply_rights(address, end).error();
}

void UserFaultPages::forget_rights(uintptr_t begin, uintptr_t end) {
  if (!program_rights_.any()) return;
  std::lock_guard lock(rights_mutex_);
  (void)program_rights_.for_each(begin, end, [](uintptr_t from, uintptr_t to, int rights) {
    if (rights != ProgramRights::kUsual)
      need(platform::protect(reinterpret_cast<void*>(from), to - from, Protection::kReadWrite));
    return true;
  });
  record(begin, end, ProgramRights::kUsual);
}

}  // namespace spw::access
