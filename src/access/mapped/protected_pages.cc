#include "access/mapped/protected_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "access/engine.h"
#include "base/check.h"
#include "base/need.h"
#include "base/units.h"
#include "platform/machine.h"
#include "platform/raw_calls.h"
#include "telemetry/counters.h"

namespace spw::access {

using platform::Advice, platform::Protection;

Result<std::unique_ptr<PlacedPages>> ProtectedPages::create(std::byte* base, uint64_t bytes,
                                                            unsigned block_shift, uint64_t edges_max) {
  auto memory = open_memory();
  if (!memory) return memory.status();
  if (edges_max == 0) edges_max = platform::mappings_max() / 2;
  std::unique_ptr<ProtectedPages> pages(
      new ProtectedPages(base, bytes, block_shift, edges_max, std::move(*memory)));
  for (Status status : {pages->make_tables(), pages->reserve()})
    if (!status) return status;
  return std::unique_ptr<PlacedPages>(std::move(pages));
}

// Nothing of it is known to be there before begin() and adopt().
Result<std::unique_ptr<PlacedPages>> ProtectedPages::inherit(const platform::UserFault&) {
  auto memory = open_memory();
  if (!memory) return memory.status();
  std::unique_ptr<ProtectedPages> pages(
      new ProtectedPages(base_, bytes_, block_shift_, edges_max_, std::move(*memory)));
  if (Status status = pages->make_tables(); !status) return status;
  pages->program_rights_.copy(program_rights_);
  return std::unique_ptr<PlacedPages>(std::move(pages));
}

Result<platform::OwnMemory> ProtectedPages::open_memory() {
  auto memory = platform::OwnMemory::open();
  if (!memory) return memory.status();
  auto page = platform::map_anonymous(kMmuPageBytes);
  if (!page) return page.status();
  const std::byte probe{0x5B};
  if (Status s = platform::protect(page->data(), kMmuPageBytes, Protection::kNone); !s) return s;
  if (Status s = memory->write(page->data(), &probe, 1); !s) return s;
  if (Status s = platform::protect(page->data(), kMmuPageBytes, Protection::kRead); !s) return s;
  if (*page->data() != probe) return Status(EIO, "/proc/self/mem is not this process's memory");
  return memory;
}

Status ProtectedPages::make_tables() {
  const uint64_t windows = (bytes_ >> block_shift_) / kWindowBlocks + 1;
  const auto map = [](uint64_t bytes, platform::Mapping* mapped) {
    auto made = platform::map_anonymous(round_up(bytes, kMmuPageBytes));
    if (!made) return made.status();
    *mapped = std::move(*made);
    return Status();
  };
  if (Status s = map(windows * kWindowBlocks, &states_); !s) return s;
  if (Status s = map(windows * sizeof(Window), &windows_); !s) return s;
  return map(kMmuPageBytes, &scratch_);
}

// The first touch comes while the space is one area: those that are made of it have its anon_vma (mm/vma.c merges no
// areas with different ones).
Status ProtectedPages::reserve() {
  if (Status s = platform::protect(base_, bytes_, Protection::kReadWrite); !s) return s;
  std::memset(base_, 0, 1);
  if (Status s = platform::advise(base_, kMmuPageBytes, Advice::kDontNeed); !s) return s;
  return platform::protect(base_, bytes_, Protection::kNone);
}

Status ProtectedPages::begin(uint64_t) {
  has_begun_.store_relaxed(true);
  return platform::protect(base_, bytes_, Protection::kNone);
}

Status ProtectedPages::renew(std::byte* address, uint64_t bytes) {
  return platform::protect(address, bytes, Protection::kNone);
}

void ProtectedPages::adopt(std::byte* address, uint64_t bytes) {
  (void)for_each_piece(address, bytes, [&](const Piece& piece) {
    std::lock_guard lock(lock_of(piece.window));
    change(piece, [](uint8_t) { return kWritable; });
    return Status();
  });
}

Status ProtectedPages::copy(std::byte* address, const std::byte* from, uint64_t bytes, bool is_writable) {
  if (Status s = memory_.write(address, from, bytes); !s) return s;
  return for_each_piece(address, bytes, [&](const Piece& piece) {
    return with_room(piece.window, [&] { return open_as(piece, is_writable ? kWritable : kReadable); });
  });
}

Status ProtectedPages::allow_stores(std::byte* address, uint64_t bytes) {
  return for_each_piece(address, bytes, [&](const Piece& piece) {
    return with_room(piece.window, [&] {
      return for_each_present(piece, [&](const Piece& run) { return open_as(run, kWritable); });
    });
  });
}

bool ProtectedPages::is_readable(const std::byte* address, uint64_t bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  return program_rights_.allow_reads(begin, begin + bytes);
}

Status ProtectedPages::let_read(std::byte* address, uint64_t bytes) {
  return for_each_piece(address, bytes, [&](const Piece& piece) {
    return with_room(piece.window, [&] {
      change(piece, [](uint8_t state) { return static_cast<uint8_t>(state | kLetRead); });
      return give_open_rights(piece);
    });
  });
}

Status ProtectedPages::begin_writeback(std::byte* address, uint64_t bytes) {
  return for_each_piece(address, bytes, [&](const Piece& piece) {
    return with_room(piece.window, [&] {
      change(piece, [](uint8_t state) { return static_cast<uint8_t>(state | kHeld); });
      return for_each_present(piece, [&](const Piece& run) { return open_as(run, kReadable); });
    });
  });
}

void ProtectedPages::end_writeback(std::byte* address, uint64_t bytes) {
  const Status ended = for_each_piece(address, bytes, [&](const Piece& piece) {
    return with_room(piece.window, [&] {
      change(piece, [](uint8_t state) { return static_cast<uint8_t>(state & ~(kHeld | kLetRead)); });
      return program_rights_.any() ? give_open_rights(piece) : Status();
    });
  });
  need(ended);
}

void ProtectedPages::release(std::span<const iovec> blocks) {
  for (std::span<const iovec> left = blocks; !left.empty();) {
    const iovec run = platform::take_adjoining(&left);
    const Status taken = for_each_piece(run.iov_base, run.iov_len, [&](const Piece& piece) {
      return with_room(piece.window, [&] {
        const uint8_t* states = states_of(piece.window);
        const bool is_open = std::any_of(states + piece.first, states + piece.end(),
                                         [](uint8_t state) { return (state & kOpen) != 0; });
        if (is_open)
          if (Status s = platform::protect(address_of(piece), uint64_t{piece.count} << block_shift_,
                                           Protection::kNone);
              !s)
            return s;
        change(piece, [](uint8_t) { return kAbsent; });
        return Status();
      });
    });
    need(taken);
  }
  releaser_.release(blocks);
}

void ProtectedPages::keep_open(std::byte* address) {
  const Piece piece = piece_at(reinterpret_cast<uintptr_t>(address));
  bool is_held = false;
  const Status opened = with_room(piece.window, [&]() -> Status {
    if (!is_held) ++window(piece.window).holds;
    is_held = true;
    const uint8_t state = states_of(piece.window)[piece.first];
    return (state & kRights) == kAbsent ? Status() : open_as(piece, state);
  });
  need(opened);
}

void ProtectedPages::keep_open_until_released(std::byte* address, uint64_t bytes) {
  need(for_each_piece(address, bytes, [&](const Piece& piece) {
    return with_room(piece.window, [&] {
      return for_each_present(piece, [&](const Piece& run) {
        change(run, [](uint8_t state) { return static_cast<uint8_t>(state | kKeptOpen); });
        return open_as(run, states_of(run.window)[run.first]);
      });
    });
  }));
}

void ProtectedPages::let_close(std::byte* address) {
  const Piece piece = piece_at(reinterpret_cast<uintptr_t>(address));
  std::lock_guard lock(lock_of(piece.window));
  SPW_DCHECK(window(piece.window).holds > 0);
  --window(piece.window).holds;
}

Admitted ProtectedPages::admit(uintptr_t address, bool is_store) {
  if (address - reinterpret_cast<uintptr_t>(base_) >= bytes_) return Admitted::kNot;
  const int program = program_rights_.at(address);
  if ((program & (is_store ? PROT_WRITE : PROT_READ)) == 0) return Admitted::kRefused;
  const Piece piece = piece_at(address);
  auto admitted = Admitted::kYes;
  const Status opened = with_room(piece.window, [&]() -> Status {
    const uint8_t state = states_of(piece.window)[piece.first];
    if ((state & kRights) == kAbsent || (is_store && (state & kRights) != kWritable)) {
      admitted = Admitted::kNot;
      return {};
    }
    if ((state & kOpen) != 0) return give_rights(piece, state);  // by another thread, or in part
    telemetry::count(telemetry::Counter::reopen_faults);
    return open_as(alike_around(piece), state);
  });
  need(opened);
  return admitted;
}

// What is closed gets the new rights when it is opened. What may be stored to or executed may be read, too: so it is on
// this processor.
int ProtectedPages::program_protects(uintptr_t address, uint64_t bytes, int protection,
                                     const std::function<void()>& await_writes) {
  if ((protection & ~(PROT_READ | PROT_WRITE | PROT_EXEC)) != 0) return EINVAL;
  const uint64_t offset = address - reinterpret_cast<uintptr_t>(base_);
  if (offset >= bytes_ || bytes > bytes_ - offset) return ENOMEM;
  if (protection != PROT_NONE) protection |= PROT_READ;
  const uintptr_t end = address + round_up(bytes, kMmuPageBytes);
  const bool has_begun = has_begun_.load_relaxed();
  // A policy that forbids some rights does so for all private memory.
  void* const tried = has_begun ? static_cast<void*>(scratch_.data()) : reinterpret_cast<void*>(address);
  if (platform::raw::mprotect(tried, has_begun ? kMmuPageBytes : end - address, protection) != 0)
    return errno;
  Parts awaited;
  {
    std::lock_guard lock(choosing_mutex_);
    if (has_begun && protection == PROT_NONE) awaited = note_awaited(address, end);
    program_rights_.set(address, end, protection);
  }
  if (!has_begun) return 0;
  if (!awaited.empty()) {
    fence_seq_cst();
    await_writes();
    drop_awaited(awaited);
  }
  const Status changed = give_rights_anew(address, end);
  return changed ? 0 : changed.error();
}

// What may be being written by one that knows of no rights: it can be read now, or another waits for it, too.
ProtectedPages::Parts ProtectedPages::note_awaited(uintptr_t begin, uintptr_t end) {
  Parts parts;
  const auto note = [&](uintptr_t from, uintptr_t to, bool is_awaited) {
    if (is_awaited) parts.emplace_back(from, to);
    return true;
  };
  (void)program_rights_.for_each(begin, end, [&](uintptr_t from, uintptr_t to, int rights) {
    return note(from, to, (rights & PROT_READ) != 0);
  });
  std::lock_guard lock(awaited_mutex_);
  (void)awaited_.for_each(
      begin, end, [&](uintptr_t from, uintptr_t to, int waiting) { return note(from, to, waiting > 0); });
  for (const auto& [from, to] : parts) awaited_.change(from, to, [](int waiting) { return waiting + 1; });
  return parts;
}

void ProtectedPages::drop_awaited(const Parts& parts) {
  std::lock_guard lock(awaited_mutex_);
  for (const auto& [from, to] : parts) awaited_.change(from, to, [](int waiting) { return waiting - 1; });
}

// To what is open of the range.
Status ProtectedPages::give_rights_anew(uintptr_t begin, uintptr_t end) {
  const uint64_t block_bytes = uint64_t{1} << block_shift_;
  const uintptr_t first = round_down(begin, block_bytes);
  return for_each_piece(
      reinterpret_cast<void*>(first), round_up(end, block_bytes) - first,
      [&](const Piece& piece) { return with_room(piece.window, [&] { return give_open_rights(piece); }); });
}

void ProtectedPages::forget_rights(uintptr_t begin, uintptr_t end) {
  if (!program_rights_.any()) return;
  {
    std::lock_guard lock(choosing_mutex_);
    program_rights_.set(begin, end, ProgramRights::kUsual);
  }
  if (has_begun_.load_relaxed()) need(give_rights_anew(begin, end));
}

bool ProtectedPages::may_execute(uintptr_t address) const {
  return (program_rights_.at(address) & PROT_EXEC) != 0;
}

// ---- Windows ----

ProtectedPages::Piece ProtectedPages::piece_at(uintptr_t address) const {
  const uint64_t block = (address - reinterpret_cast<uintptr_t>(base_)) >> block_shift_;
  return {block / kWindowBlocks, static_cast<uint32_t>(block % kWindowBlocks), 1};
}

template <class Visit>
Status ProtectedPages::for_each_piece(const void* address, uint64_t bytes, Visit visit) const {
  Piece piece = piece_at(reinterpret_cast<uintptr_t>(address));
  for (uint64_t left = bytes >> block_shift_; left > 0; left -= piece.count) {
    piece.count = static_cast<uint32_t>(std::min<uint64_t>(left, kWindowBlocks - piece.first));
    if (Status s = visit(piece); !s) return s;
    if (piece.end() == kWindowBlocks) piece = {piece.window + 1, 0, piece.count};
  }
  return {};
}

// Of blocks whose bytes are the same.
template <class Visit>
Status ProtectedPages::for_each_present(const Piece& piece, Visit visit) const {
  const uint8_t* states = states_of(piece.window);
  for (uint32_t first = piece.first, end = first; first < piece.end(); first = end) {
    const uint8_t state = states[first];
    while (end < piece.end() && states[end] == state) ++end;
    if ((state & kRights) == kAbsent) continue;
    if (Status s = visit(Piece{piece.window, first, end - first}); !s) return s;
  }
  return {};
}

ProtectedPages::Piece ProtectedPages::alike_around(const Piece& piece) const {
  const uint8_t* states = states_of(piece.window);
  uint32_t first = piece.first, end = piece.end();
  while (first > 0 && states[first - 1] == states[piece.first]) --first;
  while (end < kWindowBlocks && states[end] == states[piece.first]) ++end;
  return {piece.window, first, end - first};
}

template <class Attempt>
Status ProtectedPages::with_room(uint64_t number, Attempt attempt) {
  for (int i = 0; i < kClosedAtATime && is_over_limit(); ++i)
    if (!close_oldest()) break;
  for (int tries = 0;; ++tries) {
    const uint64_t closed = closed_.load_acquire();
    {
      std::lock_guard lock(lock_of(number));
      Status status = attempt();
      if (status || status.error() != ENOMEM) return status;
    }
    if ((!close_oldest() && closed_.load_acquire() == closed) || tries == kRetriesMax)
      return Status(ENOMEM, "the kernel has no area left for access rights (vm.max_map_count)");
  }
}

// Under the window's lock, as all that follows. The blocks' bytes are the same, or none of them is held; what is held
// stays so.
Status ProtectedPages::open_as(const Piece& piece, uint8_t state) {
  const uint8_t held = states_of(piece.window)[piece.first] & (kHeld | kLetRead | kKeptOpen);
  change(piece, [&](uint8_t) { return static_cast<uint8_t>((state & kRights) | kOpen | held); });
  return give_rights(piece, (state & kRights) | held);
}

Status ProtectedPages::give_open_rights(const Piece& piece) const {
  return for_each_present(piece, [&](const Piece& run) {
    const uint8_t state = states_of(run.window)[run.first];
    return (state & kOpen) != 0 ? give_rights(run, state) : Status();
  });
}

Status ProtectedPages::give_rights(const Piece& piece, uint8_t state) const {
  static_assert(kReadable == PROT_READ && kWritable == (PROT_READ | PROT_WRITE));
  const int missing = (state & kRights) == kWritable ? 0 : PROT_WRITE;
  const int added = (state & kLetRead) != 0 ? PROT_READ : 0;
  const auto begin = reinterpret_cast<uintptr_t>(address_of(piece));
  int error = 0;
  const auto give_part = [&](uintptr_t from, uintptr_t to, int rights) {
    if (platform::raw::mprotect(reinterpret_cast<void*>(from), to - from, rights) != 0) error = errno;
    return error == 0;
  };
  const auto give = [&](uintptr_t from, uintptr_t to, int program) {
    const int rights = (program & ~missing) | added;
    if ((state & kHeld) == 0 || (rights & PROT_READ) != 0) return give_part(from, to, rights);
    std::lock_guard lock(awaited_mutex_);
    return awaited_.for_each(from, to, [&](uintptr_t first, uintptr_t last, int waiting) {
      return give_part(first, last, waiting > 0 ? rights | PROT_READ : rights);
    });
  };
  const uintptr_t end = begin + (uint64_t{piece.count} << block_shift_);
  if (program_rights_.any())
    (void)program_rights_.for_each(begin, end, give);
  else
    give(begin, end, ProgramRights::kUsual);
  return error == 0 ? Status() : Status(error, "cannot change a block's access rights");
}

// `change`: of a block's byte.
template <class Change>
void ProtectedPages::change(const Piece& piece, Change change) {
  Window& changed = window(piece.window);
  const uint32_t before = edges_in(piece);
  uint8_t* states = states_of(piece.window);
  std::transform(states + piece.first, states + piece.end(), states + piece.first, change);
  const uint32_t after = edges_in(piece);
  changed.edges = static_cast<uint16_t>(changed.edges + after - before);
  edges_.fetch_add_relaxed(uint64_t{after} - before);
  if (changed.edges > 0 && !changed.is_queued) enqueue(piece.window);
}

// Between the piece's blocks, and at its ends. A window's neighbours count as closed.
uint32_t ProtectedPages::edges_in(const Piece& piece) const {
  const uint8_t* states = states_of(piece.window);
  const auto rights_at = [&](uint32_t i) { return (states[i] & kOpen) != 0 ? states[i] & kRights : 0; };
  uint32_t edges = 0;
  int before = piece.first == 0 ? 0 : rights_at(piece.first - 1);
  for (uint32_t i = piece.first; i <= piece.end(); ++i) {
    const int here = i == kWindowBlocks ? 0 : rights_at(i);
    edges += here != before;
    before = here;
  }
  return edges;
}

// ---- The queue of windows with open blocks ----

bool ProtectedPages::is_over_limit() {
  if (edges_.load_relaxed() <= edges_max_) return false;
  std::lock_guard lock(queue_mutex_);
  return queued_ > kOpenWindowsMin;
}

// False: none can be closed.
bool ProtectedPages::close_oldest() {
  std::lock_guard closing(closing_mutex_);
  uint64_t tries, number;
  {
    std::lock_guard lock(queue_mutex_);
    tries = queued_;
  }
  for (; tries > 0 && dequeue(&number); --tries)
    if (close(number)) {
      closed_.store_release(closed_.load_relaxed() + 1);
      return true;
    }
  return false;
}

// But for blocks that are held or kept open. What stays open waits in the queue again.
bool ProtectedPages::close(uint64_t number) {
  std::lock_guard lock(lock_of(number));
  Window& closed = window(number);
  closed.is_queued = false;
  const uint32_t edges = closed.edges;
  const uint8_t* states = states_of(number);
  const uint64_t left = (bytes_ >> block_shift_) - number * kWindowBlocks;
  const auto end = static_cast<uint32_t>(std::min<uint64_t>(kWindowBlocks, left));
  for (uint32_t first = 0; first < end && closed.edges > 0 && closed.holds == 0;) {
    Piece run{number, first, 0};
    while (run.end() < end && (states[run.end()] & (kHeld | kKeptOpen)) == 0) ++run.count;
    first = run.end() + 1;
    if (run.count == 0) continue;
    if (!platform::protect(address_of(run), uint64_t{run.count} << block_shift_, Protection::kNone)) break;
    change(run, [](uint8_t state) { return static_cast<uint8_t>(state & kRights); });
  }
  if (closed.edges > 0 && !closed.is_queued) enqueue(number);
  return closed.edges < edges;
}

void ProtectedPages::enqueue(uint64_t number) {
  window(number).is_queued = true;
  std::lock_guard lock(queue_mutex_);
  if (queued_++ == 0)
    oldest_ = static_cast<uint32_t>(number);
  else
    window(newest_).next = static_cast<uint32_t>(number);
  newest_ = static_cast<uint32_t>(number);
}

bool ProtectedPages::dequeue(uint64_t* number) {
  std::lock_guard lock(queue_mutex_);
  if (queued_ == 0) return false;
  --queued_;
  *number = oldest_;
  oldest_ = window(oldest_).next;
  return true;
}

}  // namespace spw::access
