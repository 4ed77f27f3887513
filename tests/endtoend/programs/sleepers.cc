// Threads that sleep at objects in managed memory, and are woken, while libc touches other blocks all the time: what
// foreign code touches is soon no longer at its own address.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "parts.h"

namespace {

constexpr int kRounds = 400;
constexpr int kInLine = 3;  // threads that take turns at one object
constexpr size_t kApart = 64 << 10;

// Each kind of object, in a block of its own.
struct Places {
  struct Condition {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int turn;
    unsigned long sum;
  };
  struct CCondition {
    mtx_t mutex;
    cnd_t changed;
    int turn;
    unsigned long sum;
  };
  struct Semaphores {
    sem_t of[kInLine];
    unsigned long sum;
  };
  struct Lock {
    pthread_rwlock_t lock;
    unsigned long sum;
  };
  struct Turn {
    std::atomic<int> turn;
    unsigned long sum;
  };

  template <class Place>
  static Place& made() {
    return *new (std::calloc(1, kApart)) Place();
  }

  Condition& condition = made<Condition>();
  CCondition& c_condition = made<CCondition>();
  Semaphores& semaphores = made<Semaphores>();
  Lock& lock = made<Lock>();
  Turn& turn = made<Turn>();
  pthread_barrier_t& barrier = made<pthread_barrier_t>();
};

void take_turns(Places& all, int me) {
  const int next = (me + 1) % kInLine;
  long seen = 0;
  for (int round = 0; round < kRounds; ++round) {
    Places::Condition& c = all.condition;
    pthread_mutex_lock(&c.mutex);
    while (c.turn != me) {
      timespec soon;
      timespec_get(&soon, TIME_UTC);
      soon.tv_sec += 30;
      round % 2 == 0 ? pthread_cond_wait(&c.changed, &c.mutex)
                     : pthread_cond_timedwait(&c.changed, &c.mutex, &soon);
    }
    c.turn = next;
    c.sum = c.sum * 3 + static_cast<unsigned long>(me);
    pthread_cond_broadcast(&c.changed);
    pthread_mutex_unlock(&c.mutex);

    Places::CCondition& d = all.c_condition;
    mtx_lock(&d.mutex);
    while (d.turn != me) cnd_wait(&d.changed, &d.mutex);
    d.turn = next;
    d.sum = d.sum * 3 + static_cast<unsigned long>(me);
    cnd_broadcast(&d.changed);
    mtx_unlock(&d.mutex);

    sem_wait(&all.semaphores.of[me]);
    all.semaphores.sum = all.semaphores.sum * 3 + static_cast<unsigned long>(me);
    sem_post(&all.semaphores.of[next]);

    for (int now; (now = all.turn.turn) != me;) all.turn.turn.wait(now);
    all.turn.sum = all.turn.sum * 3 + static_cast<unsigned long>(me);
    all.turn.turn = next;
    all.turn.turn.notify_all();

    pthread_rwlock_wrlock(&all.lock.lock);
    all.lock.sum += static_cast<unsigned long>(me + round);
    std::this_thread::yield();  // so that others have to wait
    pthread_rwlock_unlock(&all.lock.lock);
    pthread_rwlock_rdlock(&all.lock.lock);
    seen += all.lock.sum != 0;
    pthread_rwlock_unlock(&all.lock.lock);

    pthread_barrier_wait(&all.barrier);
  }
  if (seen == 0) std::printf("thread %d saw nothing\n", me);
}

// A function of libc that nobody replaces reads and writes a few bytes in one block after the other.
void let_libc_touch(const std::atomic<bool>& done) {
  constexpr size_t kBytes = 6u << 20;
  auto* bytes = static_cast<char*>(std::calloc(1, kBytes));
  while (!done)
    for (size_t at = 0; at < kBytes && !done; at += 4096)
      (void)jrand48(reinterpret_cast<unsigned short*>(bytes + at));
  std::free(bytes);
}

int sleepers(long mib_more) {
  Places all;
  pthread_mutex_init(&all.condition.mutex, nullptr);
  pthread_cond_init(&all.condition.changed, nullptr);
  mtx_init(&all.c_condition.mutex, mtx_plain);
  cnd_init(&all.c_condition.changed);
  pthread_rwlock_init(&all.lock.lock, nullptr);
  pthread_barrier_init(&all.barrier, nullptr, kInLine);
  for (unsigned i = 0; i < kInLine; ++i) sem_init(&all.semaphores.of[i], 0, i == 0);
  std::atomic<bool> done{false};
  std::thread toucher([&] { let_libc_touch(done); });
  std::vector<std::thread> threads;
  for (int t = 0; t < kInLine; ++t) threads.emplace_back([&, t] { take_turns(all, t); });
  std::vector<std::unique_ptr<std::vector<char>>> more;
  for (long i = 0; i < mib_more; ++i) {
    more.push_back(std::make_unique<std::vector<char>>(1u << 20, static_cast<char>(i)));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  toucher.join();
  long sum = 0;
  for (const auto& bytes : more) sum += bytes->front() + bytes->back();
  std::printf("sums %lx %lx %lx %lx %lx, more %ld\n", all.condition.sum, all.c_condition.sum,
              all.semaphores.sum, all.turn.sum, all.lock.sum, sum);
  pthread_barrier_destroy(&all.barrier);
  pthread_rwlock_destroy(&all.lock.lock);
  cnd_destroy(&all.c_condition.changed);
  mtx_destroy(&all.c_condition.mutex);
  pthread_cond_destroy(&all.condition.changed);
  pthread_mutex_destroy(&all.condition.mutex);
  return 0;
}

long futex(const void* word, int operation, long value, long move = 0, const void* second = nullptr,
           long third = 0) {
  return syscall(SYS_futex, word, operation, value, move, second, third);
}

// Whoever wakes others by a futex may come after one of them has freed it.
int late_wake(long) {
  auto* word = static_cast<int*>(std::calloc(1, 1u << 20));
  *word = 1;
  std::free(word);
  std::printf("woken %ld\n", futex(word, FUTEX_WAKE_PRIVATE, 1));
  return 0;
}

// Who is moved from one word to another is woken there at the latest: earlier is allowed, so nothing is printed before
// the sleeper has ended.
int requeued(long mib_more) {
  auto* words = static_cast<std::atomic<int>*>(std::calloc(1, 1u << 20));
  std::atomic<int>*first = words, *second = words + (1u << 17);
  std::thread sleeper([=] { futex(first, FUTEX_WAIT_PRIVATE, 0); });
  // Once the sleeper is there to be moved.
  constexpr int kTriesMax = 20'000;
  long moved = 0;
  for (int tries = 0; tries < kTriesMax && moved != 1; ++tries) {
    usleep(1000);
    moved = futex(first, FUTEX_CMP_REQUEUE_PRIVATE, 0, 1, second, 0);
  }
  std::vector<char> more(static_cast<size_t>(mib_more) << 20, 'm');
  futex(second, FUTEX_WAKE_PRIVATE, 1);
  sleeper.join();
  std::printf("moved %ld\n", moved);
  std::printf("more %d\n", more[more.size() / 2]);
  return 0;
}

// Mutexes that nobody else wants. `kind`: 0 ordinary, 1 shared, 2 robust, 3 with inherited priority.
int free_locks(long kind) {
  constexpr int kTimes = 20'000;
  volatile auto* more = static_cast<char*>(std::calloc(16, 1u << 20));  // which does not fit: it is watched
  for (size_t at = 0; at < 16u << 20; at += 4096) more[at] = 'm';
  auto* mutexes = static_cast<pthread_mutex_t*>(std::calloc(3, sizeof(pthread_mutex_t)));
  int sum = 0;
  for (const int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK}) {
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_settype(&how, type);
    if (kind == 1) pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    if (kind == 2) pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
    if (kind == 3) pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT);
    pthread_mutex_t* mutex = mutexes + type;
    pthread_mutex_init(mutex, &how);
    for (int i = 0; i < kTimes; ++i) {
      sum += pthread_mutex_lock(mutex);
      if (type == PTHREAD_MUTEX_ERRORCHECK) sum += pthread_mutex_lock(mutex) == EDEADLK;
      const int again = pthread_mutex_trylock(mutex);
      sum += again == (type == PTHREAD_MUTEX_RECURSIVE ? 0 : EBUSY);
      if (again == 0) sum += pthread_mutex_unlock(mutex);
      sum += pthread_mutex_unlock(mutex);
    }
    if (type == PTHREAD_MUTEX_ERRORCHECK) std::printf("not held: %d\n", pthread_mutex_unlock(mutex) == EPERM);
    std::printf("%d: %d, destroyed: %d\n", type, sum, pthread_mutex_destroy(mutex));
  }
  std::printf("more %d\n", more[8u << 20]);
  std::free(const_cast<char*>(more));
  std::free(mutexes);
  return 0;
}

constexpr Part kParts[] = {
    {"sleepers", sleepers}, {"late_wake", late_wake}, {"requeued", requeued}, {"free_locks", free_locks}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
