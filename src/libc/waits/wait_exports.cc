// What threads wait at, under its ordinary names (waits.h).
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>

#include "libc/entry.h"
#include "libc/io/native_argument.h"
#include "libc/waits/lock_watch.h"
#include "libc/waits/waits.h"

using namespace spw::libc;

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
  if (is_taken_without_kernel(mutex) && real().pthread_mutex_trylock(mutex) == 0) return noted(0, mutex);
  return noted(real().pthread_mutex_lock(in_frame(mutex)), mutex);
}
SPW_ENTRY int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  if (is_taken_without_kernel(mutex)) return noted(real().pthread_mutex_trylock(mutex), mutex);
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
  if (is_released_without_kernel(mutex)) return real().pthread_mutex_unlock(mutex);
  return real().pthread_mutex_unlock(in_frame(mutex));
}
SPW_ENTRY int pthread_mutex_getprioceiling(const pthread_mutex_t* mutex, int* ceiling) noexcept {
  return real().pthread_mutex_getprioceiling(in_frame(const_cast<pthread_mutex_t*>(mutex)), Native(ceiling));
}
SPW_ENTRY int pthread_mutex_setprioceiling(pthread_mutex_t* mutex, int ceiling, int* before) noexcept {
  return real().pthread_mutex_setprioceiling(in_frame(mutex), ceiling, Native(before));
}

// Condition variables. Who waits has released the mutex, and has it
// again when the wait is over, however it ends (a cancellation, too).
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
