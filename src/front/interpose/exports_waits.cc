// What threads wait at, under its ordinary names (waits.h).
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include "front/interpose/entry.h"
#include "front/interpose/lock_watch.h"
#include "front/interpose/native_argument.h"
#include "front/interpose/waits.h"

using namespace spw::interpose;

using Deadline = const timespec*;
using spw::cache::Access;

// Mutexes.
SPW_ENTRY int pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* kind) noexcept {
  // Robust or not: what is there before means nothing.
  return real().pthread_mutex_init(in_frame<pthread_mutex_t>(mutex), Native(kind));
}
SPW_ENTRY int pthread_mutex_destroy(pthread_mutex_t* mutex) noexcept {
  return real().pthread_mutex_destroy(in_frame(mutex));
}
SPW_ENTRY int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  return noted(real().pthread_mutex_lock(in_frame(mutex)), mutex);
}
SPW_ENTRY int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  return noted(real().pthread_mutex_trylock(in_frame(mutex)), mutex);
}
SPW_ENTRY int pthread_mutex_timedlock(pthread_mutex_t* mutex, Deadline until) noexcept {
  return noted(real().pthread_mutex_timedlock(in_frame(mutex), Native(until)), mutex);
}
SPW_ENTRY int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, Deadline until) noexcept {
  return noted(real().pthread_mutex_clocklock(in_frame(mutex), clock, Native(until)), mutex);
}
SPW_ENTRY int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  note_releasing(mutex);
  return real().pthread_mutex_unlock(in_frame(mutex));
}
SPW_ENTRY int pthread_mutex_getprioceiling(const pthread_mutex_t* mutex, int* ceiling) noexcept {
  return real().pthread_mutex_getprioceiling(in_frame(const_cast<pthread_mutex_t*>(mutex)), Native(ceiling));
}
SPW_ENTRY int pthread_mutex_setprioceiling(pthread_mutex_t* mutex, int ceiling, int* before) noexcept {
  return real().pthread_mutex_setprioceiling(in_frame(mutex), ceiling, Native(before));
}

// Condition variables. Who waits has released the mutex, and has it again when the wait is over, however it ends (a cancellation, too).
namespace {
class WhileWaiting {
 public:
  explicit WhileWaiting(const void* mutex) : mutex_(mutex) { note_releasing(mutex); }
  ~WhileWaiting() { note_acquired(mutex_); }
  WhileWaiting(const WhileWaiting&) = delete;
  WhileWaiting& operator=(const WhileWaiting&) = delete;

 private:
  const void* const mutex_;
};
}  // namespace

SPW_ENTRY int pthread_cond_init(pthread_cond_t* condition, const pthread_condattr_t* kind) noexcept {
  return real().pthread_cond_init(in_frame(condition), Native(kind));
}
SPW_ENTRY int pthread_cond_destroy(pthread_cond_t* condition) noexcept {
  return real().pthread_cond_destroy(in_frame(condition));
}
SPW_ENTRY int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  const WhileWaiting waiting(mutex);
  return real().pthread_cond_wait(in_frame(condition), in_frame(mutex));
}
SPW_ENTRY int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, Deadline until) {
  const WhileWaiting waiting(mutex);
  return real().pthread_cond_timedwait(in_frame(condition), in_frame(mutex), Native(until));
}
SPW_ENTRY int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                     Deadline until) {
  const WhileWaiting waiting(mutex);
  return real().pthread_cond_clockwait(in_frame(condition), in_frame(mutex), clock, Native(until));
}
SPW_ENTRY int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  return real().pthread_cond_signal(in_frame(condition));
}
SPW_ENTRY int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  return real().pthread_cond_broadcast(in_frame(condition));
}

// Locks for many readers.
SPW_ENTRY int pthread_rwlock_init(pthread_rwlock_t* lock, const pthread_rwlockattr_t* kind) noexcept {
  return real().pthread_rwlock_init(in_frame(lock), Native(kind));
}
SPW_ENTRY int pthread_rwlock_destroy(pthread_rwlock_t* lock) noexcept {
  return real().pthread_rwlock_destroy(in_frame(lock));
}
SPW_ENTRY int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  return noted(real().pthread_rwlock_rdlock(in_frame(lock)), lock);
}
SPW_ENTRY int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  return noted(real().pthread_rwlock_tryrdlock(in_frame(lock)), lock);
}
SPW_ENTRY int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, Deadline until) noexcept {
  return noted(real().pthread_rwlock_timedrdlock(in_frame(lock), Native(until)), lock);
}
SPW_ENTRY int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, Deadline until) noexcept {
  return noted(real().pthread_rwlock_clockrdlock(in_frame(lock), clock, Native(until)), lock);
}
SPW_ENTRY int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  return noted(real().pthread_rwlock_wrlock(in_frame(lock)), lock);
}
SPW_ENTRY int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  return noted(real().pthread_rwlock_trywrlock(in_frame(lock)), lock);
}
SPW_ENTRY int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, Deadline until) noexcept {
  return noted(real().pthread_rwlock_timedwrlock(in_frame(lock), Native(until)), lock);
}
SPW_ENTRY int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, Deadline until) noexcept {
  return noted(real().pthread_rwlock_clockwrlock(in_frame(lock), clock, Native(until)), lock);
}
SPW_ENTRY int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  note_releasing(lock);
  return real().pthread_rwlock_unlock(in_frame(lock));
}

// Barriers and locks that spin.
SPW_ENTRY int pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* kind,
                                   unsigned count) noexcept {
  return real().pthread_barrier_init(in_frame(barrier), Native(kind), count);
}
SPW_ENTRY int pthread_barrier_destroy(pthread_barrier_t* barrier) noexcept {
  return real().pthread_barrier_destroy(in_frame(barrier));
}
SPW_ENTRY int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  return real().pthread_barrier_wait(in_frame(barrier));
}
SPW_ENTRY int pthread_spin_init(pthread_spinlock_t* lock, int is_shared) noexcept {
  return real().pthread_spin_init(in_frame(lock), is_shared);
}
SPW_ENTRY int pthread_spin_lock(pthread_spinlock_t* lock) noexcept {
  return noted(real().pthread_spin_lock(in_frame(lock)), const_cast<const int*>(lock));
}
SPW_ENTRY int pthread_spin_trylock(pthread_spinlock_t* lock) noexcept {
  return noted(real().pthread_spin_trylock(in_frame(lock)), const_cast<const int*>(lock));
}
SPW_ENTRY int pthread_spin_unlock(pthread_spinlock_t* lock) noexcept {
  note_releasing(const_cast<const int*>(lock));
  return real().pthread_spin_unlock(in_frame(lock));
}

// Semaphores.
SPW_ENTRY int sem_init(sem_t* semaphore, int is_shared, unsigned value) noexcept {
  return real().sem_init(in_frame(semaphore), is_shared, value);
}
SPW_ENTRY int sem_destroy(sem_t* semaphore) noexcept { return real().sem_destroy(in_frame(semaphore)); }
SPW_ENTRY int sem_wait(sem_t* semaphore) { return real().sem_wait(in_frame(semaphore)); }
SPW_ENTRY int sem_trywait(sem_t* semaphore) noexcept { return real().sem_trywait(in_frame(semaphore)); }
SPW_ENTRY int sem_timedwait(sem_t* semaphore, Deadline until) {
  return real().sem_timedwait(in_frame(semaphore), Native(until));
}
SPW_ENTRY int sem_clockwait(sem_t* semaphore, clockid_t clock, Deadline until) {
  return real().sem_clockwait(in_frame(semaphore), clock, Native(until));
}
SPW_ENTRY int sem_post(sem_t* semaphore) noexcept { return real().sem_post(in_frame(semaphore)); }
SPW_ENTRY int sem_getvalue(sem_t* semaphore, int* value) noexcept {
  return real().sem_getvalue(in_frame(semaphore, Access::kRead), Native(value));
}

// C's own names. What they name is what pthread's do.
namespace {
InFrame<mtx_t> mutex_in_frame(mtx_t* mutex) {
  static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t));
  return in_frame(mutex);  // none is robust
}
}  // namespace

SPW_ENTRY int mtx_init(mtx_t* mutex, int kind) { return real().mtx_init(mutex_in_frame(mutex), kind); }
SPW_ENTRY void mtx_destroy(mtx_t* mutex) { real().mtx_destroy(mutex_in_frame(mutex)); }
SPW_ENTRY int mtx_lock(mtx_t* mutex) { return noted(real().mtx_lock(mutex_in_frame(mutex)), mutex); }
SPW_ENTRY int mtx_trylock(mtx_t* mutex) { return noted(real().mtx_trylock(mutex_in_frame(mutex)), mutex); }
SPW_ENTRY int mtx_timedlock(mtx_t* mutex, Deadline until) {
  return noted(real().mtx_timedlock(mutex_in_frame(mutex), Native(until)), mutex);
}
SPW_ENTRY int mtx_unlock(mtx_t* mutex) {
  note_releasing(mutex);
  return real().mtx_unlock(mutex_in_frame(mutex));
}
SPW_ENTRY int cnd_init(cnd_t* condition) { return real().cnd_init(in_frame(condition)); }
SPW_ENTRY void cnd_destroy(cnd_t* condition) { real().cnd_destroy(in_frame(condition)); }
SPW_ENTRY int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  const WhileWaiting waiting(mutex);
  return real().cnd_wait(in_frame(condition), mutex_in_frame(mutex));
}
SPW_ENTRY int cnd_timedwait(cnd_t* condition, mtx_t* mutex, Deadline until) {
  const WhileWaiting waiting(mutex);
  return real().cnd_timedwait(in_frame(condition), mutex_in_frame(mutex), Native(until));
}
SPW_ENTRY int cnd_signal(cnd_t* condition) { return real().cnd_signal(in_frame(condition)); }
SPW_ENTRY int cnd_broadcast(cnd_t* condition) { return real().cnd_broadcast(in_frame(condition)); }

// syscall(), for futexes: std::atomic::wait() and what is built on it, and runtimes of other languages.
namespace {

using Word = uint32_t;

bool takes_deadline(int command) {
  return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI ||
         command == FUTEX_LOCK_PI2 || command == FUTEX_WAIT_REQUEUE_PI;
}
bool takes_second_word(int command) {
  return command == FUTEX_REQUEUE || command == FUTEX_CMP_REQUEUE || command == FUTEX_WAKE_OP ||
         command == FUTEX_CMP_REQUEUE_PI || command == FUTEX_WAIT_REQUEUE_PI;
}

bool only_looks(int command) {
  return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_WAKE ||
         command == FUTEX_WAKE_BITSET;
}

// Whoever wakes others may come when the word has been freed by one of them: then nobody sleeps there.
bool is_gone(const Word* word, int command) {
  return (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET) && is_in_frames(word) &&
         !context()->regions->is_live(reinterpret_cast<uintptr_t>(word), sizeof *word);
}

// Nobody is moved from one managed word to another, where his wait would name a frame that he has not pinned: all are woken instead,
// and look for themselves.
void wake_instead_of_moving(long (&arguments)[6]) {
  const int operation = static_cast<int>(arguments[1]), command = operation & FUTEX_CMD_MASK;
  if (command != FUTEX_REQUEUE && command != FUTEX_CMP_REQUEUE) return;
  if (command == FUTEX_REQUEUE) arguments[1] = (operation & ~FUTEX_CMD_MASK) | FUTEX_WAKE;
  arguments[2] = INT_MAX;
  arguments[3] = 0;
}

// Whether the kernel wants to be able to store to a word that it only looks at: it finds a futex that is not private by its page, and refuses one
// that it finds write-protected (as clean blocks are).
bool wants_it_writable(const Word* word, int operation) {
  return (operation & FUTEX_PRIVATE_FLAG) == 0 &&
         context()->regions->kind_at(reinterpret_cast<uintptr_t>(word)) != spw::region::Kind::kReadOnlyFile;
}

// Compilers make a plain load of an addition of nothing.
void store_what_is_there(Word* word) {
  Word value = __atomic_load_n(word, __ATOMIC_RELAXED);
  (void)__atomic_compare_exchange_n(word, &value, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

// Where managed memory is at its own addresses and faults are the program's alone to serve, a word that was evicted meanwhile fails the call.
// So it is brought back, and asked for again.
template <class Call>
long with_word_there(Word* word, int operation, Call call) {
  constexpr int kTriesMax = 100;
  const int saved_errno = errno;
  for (int tries = 0;; ++tries) {
    const long result = call();
    if (result != -1 || errno != EFAULT || tries == kTriesMax || !kernel_cannot_reach(word) ||
        !context()->regions->is_live(reinterpret_cast<uintptr_t>(word), sizeof *word))
      return result;
    errno = saved_errno;
    if (only_looks(operation & FUTEX_CMD_MASK) && !wants_it_writable(word, operation))
      (void)*static_cast<const volatile Word*>(word);
    else
      store_what_is_there(word);
  }
}

// The arguments of futex(2), the fourth and fifth as the command has it.
long call_futex(long (&given)[6]) {
  const int command = static_cast<int>(given[1]) & FUTEX_CMD_MASK;
  auto* word = reinterpret_cast<Word*>(given[0]);
  auto* second = reinterpret_cast<Word*>(given[4]);
  if (is_in_frames(word) || (takes_second_word(command) && is_in_frames(second)))
    wake_instead_of_moving(given);
  Word none = 0;
  const InFrame<Word> first_there =
      in_frame(is_gone(word, command) ? &none : word, only_looks(command) ? Access::kRead : Access::kWrite);
  const InFrame<Word> second_there = in_frame(takes_second_word(command) ? second : &none);
  if (!is_gone(word, command)) word = first_there;
  if (takes_second_word(command)) second = second_there;
  return with_word_there(word, static_cast<int>(given[1]), [&] {
    if (!takes_deadline(command))
      return real().syscall(SYS_futex, word, given[1], given[2], given[3], second, given[5]);
    const Native<const timespec> until(reinterpret_cast<Deadline>(given[3]));
    return real().syscall(SYS_futex, word, given[1], given[2], static_cast<Deadline>(until), second,
                          given[5]);
  });
}

}  // namespace

SPW_ENTRY long syscall(long number, ...) noexcept {
  long given[6];
  va_list list;
  va_start(list, number);
  for (long& argument : given) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_futex) return call_futex(given);
  return real().syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
