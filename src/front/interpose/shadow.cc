#include "front/interpose/shadow.h"

#include <errno.h>
#include <sched.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "front/interpose/real.h"
#include "front/interpose/transfers.h"

namespace spw::interpose {

constinit ShadowTable posix_shadows;
constinit ShadowTable linux_shadows;

namespace {

Atomic<size_t> g_bytes{0};             // of the bounce buffers
Atomic<Shadow*> g_unused{nullptr};     // held by nobody; linked by next_unused

bool take_bytes(size_t bytes) {
  if (g_bytes.fetch_add_relaxed(bytes) + bytes <= kShadowBytesMax) return true;
  g_bytes.fetch_sub_relaxed(bytes);
  return false;
}

void free_shadow(Shadow* shadow) {
  if (shadow->data != nullptr) {
    libc_free(shadow->data);
    g_bytes.fetch_sub_relaxed(shadow->bytes);
  }
  libc_free(shadow);
}

// With its list of pieces behind it.
Shadow* allocate_shadow(void* original, std::span<const iovec> pieces) {
  void* room = libc_malloc(sizeof(Shadow) + pieces.size_bytes());
  if (room == nullptr) return nullptr;
  auto* shadow = new (room) Shadow{};
  shadow->original = original;
  shadow->pieces = reinterpret_cast<iovec*>(shadow + 1);
  shadow->piece_count = pieces.size();
  std::copy(pieces.begin(), pieces.end(), shadow->pieces);
  return shadow;
}

bool has_positions(int fd) {
  struct stat info;
  return real().fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISBLK(info.st_mode));
}

void do_at_once(Shadow& shadow, const Transfer& transfer) {
  const int saved_errno = errno, count = static_cast<int>(shadow.piece_count);
  const ssize_t done =
      transfer.is_read ? preadv2_fd(transfer.fd, shadow.pieces, count, transfer.offset, transfer.flags)
                       : pwritev2_fd(transfer.fd, shadow.pieces, count, transfer.offset, transfer.flags);
  shadow.done_result = done < 0 ? -errno : done;
  shadow.is_done_at_once = true;
  errno = saved_errno;
}

}  // namespace

Shadow* make_shadow(void* original, const Transfer& transfer) {
  free_unused_shadows();
  Shadow* shadow = allocate_shadow(original, transfer.pieces);
  if (shadow == nullptr) return nullptr;
  shadow->is_read = transfer.is_read;
  size_t bytes = shadow->scatter().bytes();
  if (bytes > kShadowBytesMax && has_positions(transfer.fd)) {
    do_at_once(*shadow, transfer);
    return shadow;
  }
  bytes = std::min(bytes, kShadowBytesMax);
  if (bytes == 0) return shadow;
  if (take_bytes(bytes)) {
    shadow->bytes = bytes;
    shadow->data = static_cast<std::byte*>(libc_memalign(kMmuPageBytes, bytes));
    if (shadow->data == nullptr) g_bytes.fetch_sub_relaxed(bytes);
  }
  if (shadow->data == nullptr) {
    free_shadow(shadow);
    return nullptr;
  }
  if (!transfer.is_read) shadow->scatter().get(0, shadow->data, bytes);
  return shadow;
}

Shadow* make_shadow(void* original) {
  free_unused_shadows();
  return allocate_shadow(original, {});
}

void free_unused_shadows() {
  if (g_unused.load_relaxed() == nullptr) [[likely]]
    return;
  // Pairs with the release in let_go().
  for (Shadow *shadow = g_unused.exchange_acquire(nullptr), *next; shadow != nullptr; shadow = next) {
    next = shadow->next_unused;
    free_shadow(shadow);
  }
}

class ShadowTable::Lock {
 public:
  explicit Lock(ShadowTable& table) : table_(table) {
    while (table_.locked_.exchange_acquire(true)) sched_yield();
  }
  ~Lock() { table_.locked_.store_release(false); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  InRuntime guard_;
  ShadowTable& table_;
};

bool ShadowTable::add(Shadow* shadow, const void* key) {
  Lock lock(*this);
  size_t free = 0;
  while (free < end_ && slots_[free].shadow != nullptr) ++free;
  if (free == kShadowsMax) return false;
  end_ = std::max(end_, free + 1);
  shadow->key = key;
  slots_[free] = {key, shadow};
  count_.fetch_add_relaxed(1);
  return true;
}

ShadowTable::Held ShadowTable::find(const void* key) {
  if (is_empty()) return {};
  Lock lock(*this);
  for (Slot& slot : std::span(slots_, end_)) {
    if (slot.key != key || slot.shadow == nullptr) continue;
    ++slot.shadow->holds;
    return {*this, slot.shadow};
  }
  return {};
}

ShadowTable::Held ShadowTable::next(size_t* place) {
  Lock lock(*this);
  while (*place < end_) {
    Shadow* shadow = slots_[(*place)++].shadow;
    if (shadow == nullptr) continue;
    ++shadow->holds;
    return {*this, shadow};
  }
  return {};
}

bool ShadowTable::begin_end(Shadow& shadow) {
  SPW_CHECK(InRuntime::here());
  for (;; sched_yield()) {  // as long as it takes to copy kShadowBytesMax
    Lock lock(*this);
    if (shadow.state == Shadow::State::kOver) return false;
    if (shadow.state == Shadow::State::kEnding) continue;
    shadow.state = Shadow::State::kEnding;
    return true;
  }
}

void ShadowTable::take_out(Shadow& shadow) {
  for (Slot& slot : std::span(slots_, end_))
    if (slot.shadow == &shadow) slot = {};
  while (end_ > 0 && slots_[end_ - 1].shadow == nullptr) --end_;
  count_.fetch_sub_acq_rel(1);  // pairs with is_empty()
}

void ShadowTable::end(Shadow& shadow) {
  {
    Lock lock(*this);
    SPW_CHECK(shadow.state == Shadow::State::kEnding);
    shadow.state = Shadow::State::kOver;
    take_out(shadow);
  }
  let_go(&shadow);
}

void ShadowTable::let_go(Shadow* shadow) {
  Lock lock(*this);
  if (--shadow->holds != 0) return;
  Shadow* first = g_unused.load_relaxed();
  do shadow->next_unused = first;
  while (!g_unused.cas_weak_release(first, shadow));
}

void ShadowTable::drop(Shadow* shadow) {
  if (shadow->key != nullptr) {
    Lock lock(*this);
    take_out(*shadow);
  }
  free_shadow(shadow);
}

void ShadowTable::forked() {
  locked_.store_release(false);
  std::fill_n(slots_, end_, Slot{});
  end_ = 0;
  count_.store_relaxed(0);
}

void shadows_forked() {
  posix_shadows.forked();
  linux_shadows.forked();
}

}  // namespace spw::interpose
