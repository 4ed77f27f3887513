#include "libc/aio/shadow.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "libc/managed.h"
#include "libc/real.h"

namespace spw::libc {

constinit ShadowTable posix_shadows;

namespace {

// A small buffer that nobody uses any more says so in its own bytes.
struct UnusedBuffer {
  UnusedBuffer* next;
  size_t bytes;
};

Atomic<size_t> g_count{0};                 // of shadows
Atomic<size_t> g_bytes{0};                 // of the bounce buffers
Atomic<Shadow*> g_unused{nullptr};         // held by nobody; linked by next_unused
Atomic<UnusedBuffer*> g_buffers{nullptr};  // of shadows that are over

template <class T>
void push(Atomic<T*>& list, T* item, T* T::* next) {
  T* first = list.load_relaxed();
  do item->*next = first;
  while (!list.cas_weak_release(first, item));
}

std::byte* take_buffer(size_t bytes) {
  if (g_bytes.fetch_add_relaxed(bytes) + bytes <= shadow_bytes_max()) {
    void* room;
    if (bytes < kShadowMappedBytes) {
      room = libc_memalign(kMmuPageBytes, std::max(bytes, sizeof(UnusedBuffer)));
    } else {
      room = real().mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (room == MAP_FAILED) room = nullptr;
    }
    if (room != nullptr) return static_cast<std::byte*>(room);
  }
  g_bytes.fetch_sub_relaxed(bytes);
  return nullptr;
}

// Async-signal-safe.
void give_back_buffer(Shadow& shadow) {
  std::byte* data = std::exchange(shadow.data, nullptr);
  if (data == nullptr) return;
  if (shadow.bytes < kShadowMappedBytes) {
    push(g_buffers, new (data) UnusedBuffer{nullptr, shadow.bytes}, &UnusedBuffer::next);
    return;
  }
  const int saved_errno = errno;
  real().munmap(data, shadow.bytes);
  errno = saved_errno;
  g_bytes.fetch_sub_relaxed(shadow.bytes);
}

void free_shadow(Shadow* shadow) {
  libc_free(shadow);
  g_count.fetch_sub_relaxed(1);
}

}  // namespace

size_t shadow_count() { return g_count.load_relaxed(); }

size_t shadow_bytes_max() {
  const Context* c = context();
  return c == nullptr
             ? kShadowBytesMax
             : static_cast<size_t>(std::min<uint64_t>(kShadowBytesMax, c->memory_bytes / kShadowShare));
}

Shadow* make_shadow(void* original, const iovec& piece, size_t bytes, bool is_read) {
  free_unused_shadows();
  void* room = libc_malloc(sizeof(Shadow));
  if (room == nullptr) return nullptr;
  auto* shadow = new (room) Shadow{};
  g_count.fetch_add_relaxed(1);
  shadow->original = original;
  shadow->is_read = is_read;
  shadow->piece = piece;
  if (bytes == 0) return shadow;
  shadow->data = take_buffer(bytes);
  if (shadow->data == nullptr) {
    free_shadow(shadow);
    return nullptr;
  }
  shadow->bytes = bytes;
  if (!is_read) shadow->scatter().get(0, shadow->data, bytes);
  return shadow;
}

void free_unused_shadows() {
  // Pairs with the release in push().
  if (g_unused.load_relaxed() != nullptr)
    for (Shadow *shadow = g_unused.exchange_acquire(nullptr), *next; shadow != nullptr; shadow = next) {
      next = shadow->next_unused;
      give_back_buffer(*shadow);  // of one that never was under way
      free_shadow(shadow);
    }
  if (g_buffers.load_relaxed() != nullptr)
    for (UnusedBuffer *buffer = g_buffers.exchange_acquire(nullptr), *next; buffer != nullptr;
         buffer = next) {
      next = buffer->next;
      g_bytes.fetch_sub_relaxed(buffer->bytes);
      libc_free(buffer);
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

bool ShadowTable::add(Shadow* shadow) {
  Lock lock(*this);
  size_t free = 0;
  while (free < end_ && slots_[free].shadow != nullptr) ++free;
  if (free == kShadowsMax) return false;
  end_ = std::max(end_, free + 1);
  slots_[free] = {shadow->original, shadow};
  ++shadow->holds;
  count_.fetch_add_relaxed(1);
  return true;
}

ShadowTable::Held ShadowTable::find(const void* original) {
  if (is_empty()) return {};
  Lock lock(*this);
  for (Slot& slot : std::span(slots_, end_)) {
    if (slot.original != original || slot.shadow == nullptr) continue;
    ++slot.shadow->holds;
    return {*this, slot.shadow};
  }
  return {};
}

ShadowTable::Held ShadowTable::next_over(size_t* place) {
  Lock lock(*this);
  while (*place < end_) {
    Shadow* shadow = slots_[(*place)++].shadow;
    if (shadow == nullptr || __atomic_load_n(&shadow->posix.__error_code, __ATOMIC_ACQUIRE) == EINPROGRESS)
      continue;
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
  give_back_buffer(shadow);
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
  if (--shadow->holds == 0) push(g_unused, shadow, &Shadow::next_unused);
}

void ShadowTable::forked() {
  locked_.store_release(false);
  std::fill_n(slots_, end_, Slot{});
  end_ = 0;
  count_.store_relaxed(0);
}

void shadows_forked() { posix_shadows.forked(); }

}  // namespace spw::libc
