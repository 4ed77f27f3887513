#include "access/mapped/protected_pages.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/units.h"
#include "platform/machine.h"
#include "platform/raw_calls.h"
#include "telemetry/counters.h"

namespace spw::access {

using platform::Advice, platform::Protection;

Result<std::unique_ptr<PlacedPages>> ProtectedPages::create(std::byte* base, uint64_t bytes,
                                                            unsigned block_shift, uint64_t edges_max) {
  auto memory = platform::open_file("/proc/self/mem", O_RDWR);
  if (!memory) return memory.status();
  const uint64_t windows = (bytes >> block_shift) / kWindowBlocks + 1;
  auto states = platform::map_anonymous(round_up(windows * kWindowBlocks, kMmuPageBytes));
  if (!states) return states.status();
  auto table = platform::map_anonymous(round_up(windows * sizeof(Window), kMmuPageBytes));
  if (!table) return table.status();
  if (edges_max == 0) edges_max = platform::mappings_max() / 2;
  std::unique_ptr<ProtectedPages> pages(new ProtectedPages(
      base, bytes, block_shift, edges_max, std::move(*memory), std::move(*states), std::move(*table)));
  if (Status status = pages->try_out(); !status) return status;
  return std::unique_ptr<PlacedPages>(std::move(pages));
}

ProtectedPages::ProtectedPages(std::byte* base, uint64_t bytes, unsigned block_shift, uint64_t edges_max,
                               platform::File memory, platform::Mapping states, platform::Mapping windows)
    : base_(base),
      bytes_(bytes),
      block_shift_(block_shift),
      edges_max_(edges_max),
      memory_(std::move(memory)),
      states_(std::move(states)),
      windows_(std::move(windows)) {}

// The first touch comes while the space is one area: those that are made of it have its anon_vma (mm/vma.c merges no
// areas with different ones).
Status ProtectedPages::try_out() {
  if (Status s = platform::protect(base_, bytes_, Protection::kReadWrite); !s) return s;
  std::memset(base_, 0, 1);
  const std::byte probe{0x5B};
  Status status = platform::protect(base_, bytes_, Protection::kNone);
  if (status) status = write(base_, &probe, 1);
  if (status) status = platform::protect(base_, kMmuPageBytes, Protection::kRead);
  if (status && *base_ != probe) status = Status(EIO, "/proc/self/mem does not write this process's memory");
  if (!status) return status;
  if (Status s = platform::protect(base_, kMmuPageBytes, Protection::kNone); !s) return s;
  return platform::advise(base_, kMmuPageBytes, Advice::kDontNeed);
}

// What has no access is written, too: /proc/self/mem is a debugger's door.
Status ProtectedPages::write(std::byte* address, const std::byte* from, uint64_t bytes) const {
  while (bytes > 0) {
    const ssize_t done = platform::raw::pwrite(memory_.fd(), from, bytes,
                                               static_cast<off_t>(reinterpret_cast<uintptr_t>(address)));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return Status(done < 0 ? errno : EIO, "cannot put a block in its place");
    address += done;
    from += done;
    bytes -= static_cast<uint64_t>(done);
  }
  return {};
}

Status ProtectedPages::begin(uint64_t) {
  has_begun_ = true;
  return platform::protect(base_, bytes_, Protection::kNone);
}

Status ProtectedPages::renew(std::byte* address, uint64_t bytes) {
  return platform::protect(address, bytes, Protection::kNone);
}

void ProtectedPages::adopt(std::byte* address, uint64_t bytes) {
  (void)for_each_piece(address, bytes, [&](const Piece& piece) {
    std::lock_guard lock(lock_of(piece.window));
    note(piece, kWritable);
    return Status();
  });
}

Status ProtectedPages::copy(std::byte* address, const std::byte* from, uint64_t bytes, bool is_writable) {
  if (Status s = write(address, from, bytes); !s) return s;
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

Status ProtectedPages::begin_writeback(std::byte* address, uint64_t bytes) {
  return for_each_piece(address, bytes, [&](const Piece& piece) {
    bool is_held = false;
    return with_room(piece.window, [&] {
      if (!is_held) window(piece.window).holds += piece.count;
      is_held = true;
      return for_each_present(piece, [&](const Piece& run) { return open_as(run, kReadable); });
    });
  });
}

void ProtectedPages::end_writeback(std::byte* address, uint64_t bytes) {
  (void)for_each_piece(address, bytes, [&](const Piece& piece) {
    std::lock_guard lock(lock_of(piece.window));
    SPW_DCHECK(window(piece.window).holds >= piece.count);
    window(piece.window).holds -= piece.count;
    return Status();
  });
}

void ProtectedPages::release(std::span<const iovec> blocks) {
  for (size_t next = 0; next < blocks.size();) {
    auto* const address = static_cast<std::byte*>(blocks[next].iov_base);
    uint64_t bytes = 0;
    for (; next < blocks.size() && blocks[next].iov_base == address + bytes; ++next)
      bytes += blocks[next].iov_len;
    const Status taken = for_each_piece(address, bytes, [&](const Piece& piece) {
      return with_room(piece.window, [&] {
        const uint8_t* states = states_of(piece.window);
        const bool is_open = std::any_of(states + piece.first, states + piece.end(),
                                         [](uint8_t state) { return (state & kOpen) != 0; });
        if (is_open)
          if (Status s = platform::protect(address_of(piece), uint64_t{piece.count} << block_shift_,
                                           Protection::kNone);
              !s)
            return s;
        note(piece, kAbsent);
        return Status();
      });
    });
    SPW_CHECK(taken.is_ok());
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
    return state == kAbsent || (state & kOpen) != 0 ? Status() : open_as(piece, state);
  });
  SPW_CHECK(opened.is_ok());
}

void ProtectedPages::let_close(std::byte* address) { end_writeback(address, uint64_t{1} << block_shift_); }

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
    if ((state & kOpen) != 0) return {};
    telemetry::count(telemetry::Counter::reopen_faults);
    return open_as(alike_around(piece), state);
  });
  SPW_CHECK(opened.is_ok());
  return admitted;
}

// What is closed gets the new rights when it is opened.
std::optional<int> ProtectedPages::program_protects(uintptr_t address, uint64_t bytes, int protection) {
  if ((protection & ~(PROT_READ | PROT_WRITE | PROT_EXEC)) != 0) return EINVAL;
  const uintptr_t end = address + round_up(bytes, kMmuPageBytes);
  if (!has_begun_ &&
      platform::raw::mprotect(reinterpret_cast<void*>(address), end - address, protection) != 0)
    return errno;
  program_rights_.set(address, end, protection);
  if (!has_begun_) return 0;
  const uint64_t block_bytes = uint64_t{1} << block_shift_;
  const uintptr_t first = round_down(address, block_bytes);
  const Status changed = for_each_piece(
      reinterpret_cast<void*>(first), round_up(end, block_bytes) - first, [&](const Piece& piece) {
        return with_room(piece.window, [&] {
          return for_each_present(piece, [&](const Piece& run) {
            const uint8_t state = states_of(run.window)[run.first];
            return (state & kOpen) != 0 ? give_rights(run, state) : Status();
          });
        });
      });
  return changed ? 0 : changed.error();
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
    if (state == kAbsent) continue;
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
  while (edges_.load_relaxed() > edges_max_ && close_oldest()) {
  }
  for (;;) {
    {
      std::lock_guard lock(lock_of(number));
      Status status = attempt();
      if (status || status.error() != ENOMEM) return status;
    }
    if (!close_oldest())
      return Status(ENOMEM, "the kernel has no area left for access rights (vm.max_map_count)");
  }
}

// Under the window's lock, as all that follows.
Status ProtectedPages::open_as(const Piece& piece, uint8_t state) {
  if (Status s = give_rights(piece, state & kRights); !s) return s;
  note(piece, static_cast<uint8_t>((state & kRights) | kOpen));
  return {};
}

Status ProtectedPages::give_rights(const Piece& piece, uint8_t state) const {
  static_assert(kReadable == PROT_READ && kWritable == (PROT_READ | PROT_WRITE));
  const int missing = (state & kRights) == kWritable ? 0 : PROT_WRITE;
  const auto begin = reinterpret_cast<uintptr_t>(address_of(piece));
  int error = 0;
  const auto give = [&](uintptr_t from, uintptr_t to, int program) {
    if (platform::raw::mprotect(reinterpret_cast<void*>(from), to - from, program & ~missing) != 0)
      error = errno;
    return error == 0;
  };
  const uintptr_t end = begin + (uint64_t{piece.count} << block_shift_);
  if (program_rights_.any())
    (void)program_rights_.for_each(begin, end, give);
  else
    give(begin, end, ProgramRights::kUsual);
  return error == 0 ? Status() : Status(error, "cannot change a block's access rights");
}

void ProtectedPages::note(const Piece& piece, uint8_t state) {
  Window& changed = window(piece.window);
  const uint32_t before = edges_in(piece);
  std::fill_n(states_of(piece.window) + piece.first, piece.count, state);
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

// False: none can be closed.
bool ProtectedPages::close_oldest() {
  uint64_t tries, number;
  {
    std::lock_guard lock(queue_mutex_);
    tries = queued_;
  }
  for (; tries > 0 && dequeue(&number); --tries)
    if (close(number)) return true;
  return false;
}

bool ProtectedPages::close(uint64_t number) {
  std::lock_guard lock(lock_of(number));
  Window& closed = window(number);
  closed.is_queued = false;
  if (closed.edges == 0) return false;
  const uint64_t first = number * kWindowBlocks;
  const auto count =
      static_cast<uint32_t>(std::min<uint64_t>(kWindowBlocks, (bytes_ >> block_shift_) - first));
  if (closed.holds > 0 || !platform::protect(base_ + (first << block_shift_), uint64_t{count} << block_shift_,
                                             Protection::kNone)) {
    enqueue(number);
    return false;
  }
  uint8_t* states = states_of(number);
  for (uint32_t i = 0; i < count; ++i) states[i] &= kRights;
  edges_.fetch_sub_relaxed(closed.edges);
  closed.edges = 0;
  return true;
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
