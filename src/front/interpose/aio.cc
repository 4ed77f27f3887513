#include "front/interpose/aio.h"

#include <errno.h>

#include <algorithm>

#include "front/interpose/aio_notify.h"
#include "front/interpose/context.h"
#include "front/interpose/descriptors.h"
#include "front/interpose/memory.h"
#include "front/interpose/native_argument.h"
#include "front/interpose/real.h"

namespace spw::interpose {

using Held = ShadowTable::Held;

namespace {

// libc writes something else there when it takes a request over.
constexpr ssize_t kNotTaken = INT64_MIN;

// An operation of aio_fsync(), beside LIO_READ and its like.
constexpr int kSync = -1;
bool has_data(int operation) { return operation == LIO_READ || operation == LIO_WRITE; }

// Stands for requests that were over long ago.
const aiocb g_over{};

// The program's control block gets what libc left in the shadow's: the state and, behind it, the result.
void publish(const Shadow& shadow) {
  constexpr size_t kBegin = offsetof(aiocb, __error_code),
                   kEnd = offsetof(aiocb, __return_value) + sizeof(ssize_t);
  static_assert(offsetof(aiocb, __return_value) == kBegin + sizeof(ssize_t));
  copy_bytes(&static_cast<aiocb*>(shadow.original)->__error_code, &shadow.posix.__error_code, kEnd - kBegin);
}

void publish(aiocb* block, int error, ssize_t result) {
  store_value(&block->__error_code, error);
  store_value(&block->__return_value, result);
}

bool is_plain(const sigevent& event) {
  return event.sigev_notify != SIGEV_THREAD || !kernel_cannot_reach(event.sigev_notify_attributes);
}

bool is_plain(const aiocb* block, int operation) {
  if (kernel_cannot_reach(block)) return false;
  return is_plain(block->aio_sigevent) &&
         !(has_data(operation) && kernel_cannot_reach(const_cast<void*>(block->aio_buf)));
}

Shadow* make_for(aiocb* original, const aiocb& given, int operation) {
  if (!has_data(operation)) return make_shadow(original);
  const iovec piece{const_cast<void*>(given.aio_buf), given.aio_nbytes};
  return make_shadow(original, {given.aio_fildes, given.aio_offset, 0, operation == LIO_READ, {&piece, 1}});
}

// In the table, and held. None: errno says why, and so does the control block.
Held make(aiocb* original, const aiocb& given, int operation) {
  if (Held before = posix_shadows.find(original); before && !end_if_over(*before.get())) {
    errno = EINVAL;
    return {};
  }
  Shadow* shadow = make_for(original, given, operation);
  if (shadow == nullptr) {
    see_ends();  // of those that nobody has asked for
    shadow = make_for(original, given, operation);
  }
  if (shadow != nullptr) {
    aiocb& block = shadow->posix = given;
    block.aio_buf = shadow->data;
    if (has_data(operation)) block.aio_nbytes = shadow->bytes;
    if (shadow->is_done_at_once) block.aio_lio_opcode = LIO_READ;
    // Whoever finds it in the table finds it under way.
    block.__error_code = EINPROGRESS;
    block.__return_value = kNotTaken;
    publish(original, EINPROGRESS, 0);
    ++shadow->holds;
    notify_through(*shadow, &block.aio_sigevent);
    if (posix_shadows.add(shadow, original)) return {posix_shadows, shadow};
    posix_shadows.drop(shadow);
  }
  publish(original, EAGAIN, -1);
  errno = EAGAIN;
  return {};
}

// After libc's function: what it did not take is over, with an error, and nobody is told.
void refuse_if_not_taken(Shadow& shadow, int error) {
  if (__atomic_load_n(&shadow.posix.__return_value, __ATOMIC_RELAXED) != kNotTaken) return;
  InRuntime guard;
  shadow.posix.__return_value = -1;
  shadow.posix.__error_code = error;
  forget_notification(shadow);
}

// call(block): libc's function.
template <class Call>
int hand_over(aiocb* original, int operation, Call call) {
  const Held shadow = make(original, load_value(original), operation);
  if (!shadow) return -1;
  InRuntime guard;  // libc holds a lock that handlers may want
  const int result = shadow->is_done_at_once ? real().aio_read(&shadow->posix) : call(&shadow->posix);
  if (result == 0) return 0;
  const int error = errno;
  refuse_if_not_taken(*shadow.get(), error);
  forget_notification(*shadow.get());
  end_if_over(*shadow.get());
  errno = error;
  return result;
}

// A list as libc takes it, of native control blocks, and the shadows among them. Async-signal-safe.
class NativeList {
 public:
  static constexpr size_t kInline = 64;

  explicit NativeList(size_t count) : count_(count) {
    if (count <= kInline) return;
    void* room = real().mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    entries_ = room == MAP_FAILED ? nullptr : static_cast<aiocb**>(room);
  }
  ~NativeList() {
    if (entries_ == nullptr) return;
    for (Shadow* shadow : shadows())
      if (shadow != nullptr) posix_shadows.let_go(shadow);
    if (entries_ != inline_) real().munmap(entries_, bytes());
  }
  NativeList(const NativeList&) = delete;
  NativeList& operator=(const NativeList&) = delete;

  explicit operator bool() const { return entries_ != nullptr; }
  aiocb** blocks() const { return entries_; }
  // nullptr where there is none.
  std::span<Shadow*> shadows() const { return {reinterpret_cast<Shadow**>(entries_ + count_), count_}; }
  void put(size_t at, aiocb* block) { entries_[at] = block; }
  void put(size_t at, Held shadow) {
    entries_[at] = &shadow->posix;
    shadows()[at] = shadow.release();
  }
  bool has_shadows() const {
    return std::ranges::any_of(shadows(), [](const Shadow* shadow) { return shadow != nullptr; });
  }
  // After libc's function.
  void end_what_is_over() {
    const int saved_errno = errno;
    for (Shadow* shadow : shadows()) {
      if (shadow == nullptr) continue;
      refuse_if_not_taken(*shadow, EAGAIN);
      end_if_over(*shadow);
    }
    errno = saved_errno;
  }

 private:
  size_t bytes() const { return 2 * count_ * sizeof(void*); }

  const size_t count_;
  aiocb* inline_[2 * kInline] = {};
  aiocb** entries_ = inline_;
};

bool is_plain(aiocb* const* list, size_t count, const sigevent* event) {
  if (kernel_cannot_reach_any(list, event) || (event != nullptr && !is_plain(*event))) return false;
  return std::all_of(list, list + count, [](const aiocb* block) {
    return block == nullptr || (!kernel_cannot_reach(block) && is_plain(block, block->aio_lio_opcode));
  });
}

// False: for one of them at least there was no shadow.
bool fill(NativeList& native, aiocb* const* list, size_t count) {
  bool all = true;
  for (size_t i = 0; i < count; ++i) {
    aiocb* block = load_value(list + i);
    if (block == nullptr) continue;
    const aiocb given = load_value(block);
    if (given.aio_lio_opcode == LIO_NOP) continue;
    if (is_plain(block, given.aio_lio_opcode)) {
      native.put(i, block);
    } else if (Held shadow = make(block, given, given.aio_lio_opcode)) {
      native.put(i, std::move(shadow));
    } else {
      all = false;
    }
  }
  return all;
}

[[gnu::noinline]] int list_slowly(int mode, aiocb* const* list, size_t count, const sigevent* event) {
  NativeList native(count);
  if (!native) return static_cast<int>(fail(EAGAIN));
  const bool all = fill(native, list, count);
  sigevent its{};
  its.sigev_notify = SIGEV_NONE;
  if (event != nullptr) its = load_value(event);
  make_attributes_native(&its);
  Shadow* of_all = mode == LIO_NOWAIT && native.has_shadows() ? make_shadow(nullptr) : nullptr;
  if (of_all != nullptr) notify_through(*of_all, &its);
  const auto call = [&] { return real().lio_listio(mode, native.blocks(), static_cast<int>(count), &its); };
  int result;
  if (mode == LIO_WAIT) {
    result = call();
  } else {
    InRuntime guard;  // libc holds a lock that handlers may want
    result = call();
  }
  if (of_all != nullptr) posix_shadows.let_go(of_all);
  native.end_what_is_over();
  return all ? result : static_cast<int>(fail(EAGAIN));
}

}  // namespace

bool end_if_over(Shadow& shadow) {
  InRuntime guard;
  // Takes libc's lock: what libc does at the end of a request has been done.
  if (real().aio_error(&shadow.posix) == EINPROGRESS) return false;
  if (!posix_shadows.begin_end(shadow)) return true;
  aiocb& block = shadow.posix;
  if (shadow.is_done_at_once && block.__error_code != ECANCELED) {
    block.__error_code = shadow.done_result < 0 ? static_cast<int>(-shadow.done_result) : 0;
    block.__return_value = std::max<ssize_t>(shadow.done_result, -1);
  } else if (shadow.is_read && block.__return_value > 0) {
    shadow.scatter().put(0, shadow.data, std::min(static_cast<size_t>(block.__return_value), shadow.bytes));
  }
  publish(shadow);
  posix_shadows.end(shadow);
  return true;
}

void end_all_that_is_over() {
  const int saved_errno = errno;
  size_t place = 0;
  while (const Held shadow = posix_shadows.next(&place)) end_if_over(*shadow.get());
  errno = saved_errno;
}

int aio_transfer(aiocb* block, bool is_read) {
  const int operation = is_read ? LIO_READ : LIO_WRITE;
  const auto call = [&](aiocb* native) { return is_read ? real().aio_read(native) : real().aio_write(native); };
  return is_plain(block, operation) ? call(block) : hand_over(block, operation, call);
}

int aio_sync(int operation, aiocb* block) {
  const auto call = [&](aiocb* native) { return real().aio_fsync(operation, native); };
  return is_plain(block, kSync) ? call(block) : hand_over(block, kSync, call);
}

int aio_list(int mode, aiocb* const* list, int count, sigevent* event) {
  if (count <= 0 || (mode != LIO_WAIT && mode != LIO_NOWAIT) ||
      is_plain(list, static_cast<size_t>(count), event))
    return real().lio_listio(mode, list, count, event);
  return list_slowly(mode, list, static_cast<size_t>(count), event);
}

int aio_state(const aiocb* block) {
  if (const Held shadow = posix_shadows.find(block))
    return end_if_over(*shadow.get()) ? shadow->posix.__error_code : EINPROGRESS;
  if (!kernel_cannot_reach(block)) return real().aio_error(block);
  return load_value(&block->__error_code);
}

ssize_t aio_result(aiocb* block) {
  if (const Held shadow = posix_shadows.find(block)) {
    return end_if_over(*shadow.get()) ? shadow->posix.__return_value : 0;
  }
  if (!kernel_cannot_reach(block)) return real().aio_return(block);
  return load_value(&block->__return_value);
}

int aio_wait(const aiocb* const* list, int count, const timespec* timeout) {
  const auto n = static_cast<size_t>(std::max(count, 0));
  const auto is_managed = [](const aiocb* block) { return kernel_cannot_reach(block); };
  if (posix_shadows.is_empty() && !kernel_cannot_reach_any(list, timeout) &&
      std::none_of(list, list + n, is_managed))
    return real().aio_suspend(list, count, timeout);
  NativeList native(n);
  if (!native) return static_cast<int>(fail(EAGAIN));
  for (size_t i = 0; i < n; ++i) {
    const aiocb* block = load_value(list + i);
    if (Held shadow = posix_shadows.find(block))
      native.put(i, std::move(shadow));
    else
      native.put(i, const_cast<aiocb*>(kernel_cannot_reach(block) ? &g_over : block));
  }
  const int result = real().aio_suspend(native.blocks(), count, Native(timeout));
  native.end_what_is_over();
  return result;
}

int aio_abandon(int fd, aiocb* block) {
  int result;
  if (const Held shadow = posix_shadows.find(block)) {
    InRuntime guard;  // libc holds a lock that handlers may want
    result = real().aio_cancel(fd, &shadow->posix);
  } else if (kernel_cannot_reach(block)) {
    aiocb over = load_value(block);
    result = real().aio_cancel(fd, &over);
  } else {
    result = real().aio_cancel(fd, block);
  }
  see_ends();
  return result;
}

}  // namespace spw::interpose
