#include "libc/aio/aio.h"

#include <errno.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "libc/aio/aio_notify.h"
#include "libc/io/buffered.h"
#include "libc/io/descriptors.h"
#include "libc/io/native_argument.h"
#include "libc/io/transfers.h"
#include "libc/managed.h"
#include "libc/real.h"
#include "platform/uncancelled.h"

namespace spw::libc {

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
  if (!is_plain(block->aio_sigevent)) return false;
  if (!has_data(operation)) return true;
  const void* buffer = const_cast<void*>(block->aio_buf);
  return operation == LIO_READ ? !input_needs_help(block->aio_fildes, buffer) : !kernel_cannot_reach(buffer);
}

bool has_positions(int fd) {
  struct stat info;
  return files_or_real().fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISBLK(info.st_mode));
}

// What libc and the kernel refuse by themselves.
bool has_bad_priority(const aiocb& given) {
  return given.aio_reqprio < 0 || given.aio_reqprio > sysconf(_SC_AIO_PRIO_DELTA_MAX);
}
bool is_too_long(const aiocb& given) { return given.aio_nbytes > SSIZE_MAX; }

// More than all bounce buffers may have. Such a request becomes short, as any may, where its file has no positions;
// where it has, nobody expects that, and it is done at once, in pieces, and what is handed over has no data.
bool is_for_once(const aiocb& given, int operation) {
  return has_data(operation) && given.aio_nbytes > shadow_bytes_max() && !is_too_long(given) &&
         given.aio_offset >= 0 && !has_bad_priority(given) && has_positions(given.aio_fildes);
}

// Libc's threads may all be busy for ever, with what only this thread would end.
constexpr int kTurnWaitSeconds = 10;

// Until libc has carried out what is queued before a request of this priority on this descriptor, which may be the
// program's own: until it has come to one that reads nothing. False: libc does not take that, or does not come to it.
bool wait_for_turn(const aiocb& given) {
  InRuntime guard;  // no handler may jump out while libc knows `turn`
  aiocb turn{};
  turn.aio_fildes = given.aio_fildes;
  turn.aio_reqprio = given.aio_reqprio;
  turn.aio_sigevent.sigev_notify = SIGEV_NONE;
  if (real().aio_read(&turn) != 0) return false;
  const aiocb* const list[] = {&turn};
  timespec now, limit;
  clock_gettime(CLOCK_MONOTONIC, &limit);
  limit.tv_sec += kTurnWaitSeconds;
  while (real().aio_error(&turn) == EINPROGRESS) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > limit.tv_sec && real().aio_cancel(given.aio_fildes, &turn) == AIO_CANCELED) return false;
    const timespec round{1, 0};
    real().aio_suspend(list, 1, &round);
  }
  return true;
}

bool do_at_once(Shadow& shadow, const aiocb& given) {
  constexpr size_t kKernelsMost = 0x7ffff000;  // of one call
  const platform::Uncancelled uncancelled;
  shadow.done_result = -EAGAIN;
  if (!wait_for_turn(given)) return false;
  const size_t bytes = std::min(given.aio_nbytes, kKernelsMost);
  const ssize_t done =
      shadow.is_read ? pread_fd(given.aio_fildes, const_cast<void*>(given.aio_buf), bytes, given.aio_offset)
                     : pwrite_fd(given.aio_fildes, const_cast<void*>(given.aio_buf), bytes, given.aio_offset);
  shadow.done_result = done < 0 ? -errno : done;
  return true;
}

// Not in the table yet; one hold. `given` has native attributes.
Shadow* make_for(aiocb* original, const aiocb& given, int operation) {
  const bool is_once = is_for_once(given, operation);
  const bool has_buffer = has_data(operation) && !is_once && !is_too_long(given);
  const size_t bytes = has_buffer ? std::min(given.aio_nbytes, shadow_bytes_max()) : 0;
  const iovec piece{const_cast<void*>(given.aio_buf), bytes};
  Shadow* shadow = make_shadow(original, piece, bytes, operation == LIO_READ);
  if (shadow == nullptr) return nullptr;
  aiocb& block = shadow->posix = given;
  if (has_data(operation)) block.aio_buf = shadow->data;
  if (has_buffer || is_once) block.aio_nbytes = bytes;
  if (is_once) block.aio_lio_opcode = LIO_READ;
  shadow->is_done_at_once = is_once;
  // Whoever finds it in the table finds it under way.
  block.__error_code = EINPROGRESS;
  block.__return_value = kNotTaken;
  notify_through(*shadow, &block.aio_sigevent);
  return shadow;
}

// What libc does not have is over, with an error, and nobody is told. By the thread that hands it over.
void refuse(Shadow& shadow, int error) {
  InRuntime guard;
  forget_notification(shadow);
  shadow.posix.__return_value = -1;
  __atomic_store_n(&shadow.posix.__error_code, error, __ATOMIC_RELEASE);  // pairs with next_over()
}

// After libc's function failed: it may have told why in the block, or not.
bool was_left_alone(const Shadow& shadow) {
  return __atomic_load_n(&shadow.posix.__return_value, __ATOMIC_RELAXED) == kNotTaken;
}

// After libc's function took a list: not this one of it. libc leaves such a block alone, or refuses its priority, or
// has no thread to give it to; a request that failed later has a result of -1.
bool was_refused(const Shadow& shadow) {
  if (was_left_alone(shadow) || has_bad_priority(shadow.posix)) return true;
  const int error = real().aio_error(&shadow.posix);
  return error != EINPROGRESS && error != 0 && shadow.posix.__return_value == 0;
}

// The one that is over.
void finish(Shadow& shadow) {
  InRuntime guard;
  aiocb& block = shadow.posix;
  real().aio_error(&block);  // takes libc's lock: what libc does at the end of a request has been done
  if (!posix_shadows.begin_end(shadow)) return;
  if (shadow.is_done_at_once && block.__error_code != ECANCELED) {
    block.__error_code = shadow.done_result < 0 ? static_cast<int>(-shadow.done_result) : 0;
    block.__return_value = std::max<ssize_t>(shadow.done_result, -1);
  } else if (shadow.is_read && shadow.data != nullptr && block.__return_value > 0) {
    shadow.scatter().put(0, shadow.data, std::min(static_cast<size_t>(block.__return_value), shadow.bytes));
  }
  publish(shadow);
  posix_shadows.end(shadow);
}

// Whether the block's earlier request, which nobody may have asked for since, is over; else errno.
bool is_free(const aiocb* block) {
  const Held before = posix_shadows.find(block);
  if (!before || end_if_over(*before.get())) return true;
  errno = EINVAL;
  return false;
}

// In the table, and held. None: errno says why, and so does the control block, unless it is under way.
Held make(aiocb* original, const aiocb& wanted, int operation) {
  if (!is_free(original)) return {};
  aiocb given = wanted;
  if (make_attributes_native(&given.aio_sigevent)) {
    Shadow* shadow = make_for(original, given, operation);
    if (shadow == nullptr) {
      see_ends();  // of those that nobody has asked for
      shadow = make_for(original, given, operation);
    }
    if (shadow != nullptr) {
      publish(original, EINPROGRESS, 0);
      Held held(posix_shadows, shadow);
      bool is_in_table = posix_shadows.add(shadow);
      if (!is_in_table) {
        see_ends();
        is_in_table = posix_shadows.add(shadow);
      }
      if (is_in_table && (!shadow->is_done_at_once || do_at_once(*shadow, given))) return held;
      refuse(*shadow, EAGAIN);
      if (is_in_table) end_if_over(*shadow);
    }
  }
  publish(original, EAGAIN, -1);
  errno = EAGAIN;
  return {};
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
  if (was_left_alone(*shadow.get())) refuse(*shadow.get(), error);
  forget_notification(*shadow.get());
  end_if_over(*shadow.get());
  errno = error;
  return result;
}

// What libc's function returned, which may have told that requests are over.
template <class Result>
Result seeing_ends(Result result) {
  see_ends();
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
  // After libc's lio_listio, with shadows of this thread's making.
  void end_what_was_refused() {
    const int saved_errno = errno;
    for (Shadow* shadow : shadows()) {
      if (shadow == nullptr) continue;
      InRuntime guard;
      if (was_left_alone(*shadow))
        refuse(*shadow, EAGAIN);
      else if (was_refused(*shadow))
        forget_notification(*shadow);
    }
    see_ends();
    errno = saved_errno;
  }
  // Instead of lio_listio.
  void refuse_all() {
    for (size_t i = 0; i < count_; ++i) {
      if (shadows()[i] != nullptr)
        refuse(*shadows()[i], EAGAIN);
      else if (entries_[i] != nullptr)
        publish(entries_[i], EAGAIN, -1);
    }
    see_ends();
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

// 0, or why one of them at least is not among them.
int fill(NativeList& native, aiocb* const* list, size_t count) {
  int error = 0;
  for (size_t i = 0; i < count; ++i) {
    aiocb* block = load_value(list + i);
    if (block == nullptr) continue;
    const aiocb given = load_value(block);
    if (given.aio_lio_opcode == LIO_NOP) continue;
    if (is_plain(block, given.aio_lio_opcode)) {
      if (is_free(block))
        native.put(i, block);
      else
        error = errno;
    } else if (Held shadow = make(block, given, given.aio_lio_opcode)) {
      native.put(i, std::move(shadow));
    } else {
      error = errno;
    }
  }
  return error;
}

[[gnu::noinline]] int list_slowly(int mode, aiocb* const* list, size_t count, const sigevent* event) {
  NativeList native(count);
  if (!native) return static_cast<int>(fail(EAGAIN));
  const int error = fill(native, list, count);
  sigevent its{};
  its.sigev_notify = SIGEV_NONE;
  if (event != nullptr) its = load_value(event);
  const bool tells = mode == LIO_NOWAIT && its.sigev_notify == SIGEV_THREAD;
  if (mode == LIO_WAIT) its.sigev_notify_attributes = nullptr;
  Shadow* of_all = nullptr;
  bool can_tell = !tells || make_attributes_native(&its);
  if (can_tell && tells && native.has_shadows()) {
    of_all = make_shadow(nullptr, {}, 0, false);
    can_tell = of_all != nullptr;
    if (can_tell) notify_through(*of_all, &its);
  }
  if (!can_tell) {
    native.refuse_all();
    return static_cast<int>(fail(EAGAIN));
  }
  const auto call = [&] { return real().lio_listio(mode, native.blocks(), static_cast<int>(count), &its); };
  int result;
  if (mode == LIO_WAIT) {
    result = call();
  } else {
    InRuntime guard;  // libc holds a lock that handlers may want
    result = call();
  }
  if (of_all != nullptr) posix_shadows.let_go(of_all);
  native.end_what_was_refused();
  return error == 0 ? result : static_cast<int>(fail(error));
}

}  // namespace

bool end_if_over(Shadow& shadow) {
  {
    InRuntime guard;
    if (real().aio_error(&shadow.posix) == EINPROGRESS) return false;
  }
  end_all_that_is_over();
  return true;
}

void end_all_that_is_over() {
  const int saved_errno = errno;
  size_t place = 0;
  while (const Held shadow = posix_shadows.next_over(&place)) finish(*shadow.get());
  errno = saved_errno;
}

namespace {
// libc's queue has threads that read and write by system calls of their own: the kernel has to have such a file.
void give_back(const aiocb* block) {
  FileCalls* calls = descriptor_calls();
  if (calls == nullptr || block == nullptr) return;
  if (const int fd = load_value(&block->aio_fildes); calls->has(fd)) calls->give_back(fd);
}
}  // namespace

int aio_transfer(aiocb* block, bool is_read) {
  give_back(block);
  const int operation = is_read ? LIO_READ : LIO_WRITE;
  const auto call = [&](aiocb* native) {
    return is_read ? real().aio_read(native) : real().aio_write(native);
  };
  if (!is_plain(block, operation)) return hand_over(block, operation, call);
  return is_free(block) ? call(block) : -1;
}

int aio_sync(int operation, aiocb* block) {
  give_back(block);
  const auto call = [&](aiocb* native) { return real().aio_fsync(operation, native); };
  if (!is_plain(block, kSync)) return hand_over(block, kSync, call);
  return is_free(block) ? call(block) : -1;
}

int aio_list(int mode, aiocb* const* list, int count, sigevent* event) {
  for (int i = 0; file_calls() != nullptr && i < count; ++i) give_back(load_value(list + i));
  if (count <= 0 || (mode != LIO_WAIT && mode != LIO_NOWAIT) ||
      (posix_shadows.is_empty() && is_plain(list, static_cast<size_t>(count), event)))
    return seeing_ends(real().lio_listio(mode, list, count, event));
  return list_slowly(mode, list, static_cast<size_t>(count), event);
}

int aio_state(const aiocb* block) {
  if (const Held shadow = posix_shadows.find(block))
    return end_if_over(*shadow.get()) ? shadow->posix.__error_code : EINPROGRESS;
  const int state = kernel_cannot_reach(block) ? load_value(&block->__error_code) : real().aio_error(block);
  if (state != EINPROGRESS) see_ends();
  return state;
}

ssize_t aio_result(aiocb* block) {
  if (const Held shadow = posix_shadows.find(block))
    return end_if_over(*shadow.get()) ? shadow->posix.__return_value : 0;
  return seeing_ends(kernel_cannot_reach(block) ? load_value(&block->__return_value)
                                                : real().aio_return(block));
}

int aio_wait(const aiocb* const* list, int count, const timespec* timeout) {
  const auto n = static_cast<size_t>(std::max(count, 0));
  const auto is_managed = [](const aiocb* block) { return kernel_cannot_reach(block); };
  if (posix_shadows.is_empty() && !kernel_cannot_reach_any(list, timeout) &&
      std::none_of(list, list + n, is_managed))
    return seeing_ends(real().aio_suspend(list, count, timeout));
  NativeList native(n);
  if (!native) return static_cast<int>(fail(EAGAIN));
  for (size_t i = 0; i < n; ++i) {
    const aiocb* block = load_value(list + i);
    if (Held shadow = posix_shadows.find(block))
      native.put(i, std::move(shadow));
    else
      native.put(i, const_cast<aiocb*>(kernel_cannot_reach(block) ? &g_over : block));
  }
  // Another thread may just be handing one of them over, so none of them is refused here.
  return seeing_ends(real().aio_suspend(native.blocks(), count, Native(timeout)));
}

int aio_abandon(int fd, aiocb* block) {
  if (const Held shadow = posix_shadows.find(block)) {
    int result;
    {
      InRuntime guard;  // libc holds a lock that handlers may want
      result = real().aio_cancel(fd, &shadow->posix);
    }
    return seeing_ends(result);
  }
  if (!kernel_cannot_reach(block)) return seeing_ends(real().aio_cancel(fd, block));
  aiocb over = load_value(block);
  return seeing_ends(real().aio_cancel(fd, &over));
}

}  // namespace spw::libc
