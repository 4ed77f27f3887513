// Threads, locks and atomics in managed memory.
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdlib>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "asleep.h"
#include "parts.h"
#include "print.h"

namespace {

int come_and_go(long count) {
  constexpr size_t kWords = 2'000'000;
  auto* words = static_cast<uint64_t*>(std::calloc(kWords, sizeof(uint64_t)));
  constexpr int kAtOnce = 16;
  for (long first = 0; first < count; first += kAtOnce) {
    std::vector<std::thread> threads;
    for (long t = first; t < first + kAtOnce && t < count; ++t)
      threads.emplace_back([=] {
        for (size_t i = static_cast<size_t>(t); i < kWords; i += 20'011)
          words[i] += static_cast<uint64_t>(t) + 1;
      });
    for (auto& thread : threads) thread.join();
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < kWords; ++i) sum = mix(sum, words[i]);
  print_sum("sum", sum);
  return 0;
}

// Thread t owns the words i with i % threads == t of every block: a lost update of any of them shows.
int interleaved(long threads) {
  constexpr size_t kWords = 5u << 20;
  auto* words = static_cast<uint32_t*>(std::calloc(kWords, sizeof(uint32_t)));
  std::vector<std::thread> running;
  std::atomic<uint64_t> wrong{0};
  for (long t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      uint64_t state = static_cast<uint64_t>(t) * 77 + 1;
      uint32_t rounds = 4;
      for (uint32_t round = 0; round < rounds; ++round) {
        size_t start = next_random(&state) % (kWords / 2);  // everyone somewhere else
        start = start / static_cast<size_t>(threads) * static_cast<size_t>(threads) + static_cast<size_t>(t);
        for (size_t pass = 0; pass < 2; ++pass) {
          size_t from = pass == 0 ? start : static_cast<size_t>(t), to = pass == 0 ? kWords : start;
          for (size_t i = from; i < to; i += static_cast<size_t>(threads)) {
            wrong += words[i] != round * static_cast<uint32_t>(i + 1);
            words[i] += static_cast<uint32_t>(i + 1);
          }
        }
      }
    });
  for (auto& thread : running) thread.join();
  uint64_t sum = 0;
  for (size_t i = 0; i < kWords; ++i)
    wrong += words[i] != 4 * static_cast<uint32_t>(i + 1), sum = mix(sum, words[i]);
  std::printf("wrong %llu\n", static_cast<unsigned long long>(wrong));
  print_sum("sum", sum);
  return 0;
}

int atomics(long) {
  constexpr size_t kCounters = 512, kStride = 1024;  // a counter in every other block of 4 KiB
  auto* counters = new std::atomic<uint64_t>[kCounters * kStride];
  auto* pairs = new std::atomic<uint32_t>[64];
  auto* wide = static_cast<std::atomic<unsigned __int128>*>(std::aligned_alloc(16, 16));
  new (wide) std::atomic<unsigned __int128>(0);
  for (size_t i = 0; i < 64; ++i) pairs[i] = 0;
  std::atomic<bool> stop{false};
  std::vector<std::thread> evicting, counting;
  for (int t = 0; t < 2; ++t)
    evicting.emplace_back([&] {
      std::vector<char> cold(12u << 20);
      for (size_t i = 0; !stop; i = (i + 4096 * 7) % cold.size()) ++cold[i];
    });
  for (int t = 0; t < 8; ++t)
    counting.emplace_back([&, t] {
      uint64_t state = static_cast<uint64_t>(t) + 5;
      for (int i = 0; i < 12'000; ++i) {
        counters[next_random(&state) % kCounters * kStride].fetch_add(1);
        uint32_t old = pairs[i % 64];
        while (!pairs[i % 64].compare_exchange_weak(old, old + 3)) {
        }
        if (i % 64 == 0) counters[0].fetch_xor(0x100000000u), counters[0].fetch_xor(0x100000000u);
      }
    });
  for (auto& thread : counting) thread.join();
  stop = true;
  for (auto& thread : evicting) thread.join();
  uint64_t total = 0, total_pairs = 0;
  for (size_t i = 0; i < kCounters; ++i) total += counters[i * kStride];
  for (size_t i = 0; i < 64; ++i) total_pairs += pairs[i];
  std::printf("counted %llu and %llu\n", static_cast<unsigned long long>(total),
              static_cast<unsigned long long>(total_pairs));
  return 0;
}

// Locks of libc inside managed memory: foreign code and the kernel's futexes.
struct Shared {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_rwlock_t rwlock;
  sem_t semaphore;
  long turn, sum;
};

int foreign_locks(long) {
  constexpr int kThreads = 8, kRounds = 60;
  constexpr int kObjects = 40;
  std::vector<Shared*> objects;
  for (int i = 0; i < kObjects; ++i) {
    auto* object = static_cast<Shared*>(std::calloc(1, 8192));
    pthread_mutex_init(&object->mutex, nullptr);
    pthread_cond_init(&object->changed, nullptr);
    pthread_rwlock_init(&object->rwlock, nullptr);
    sem_init(&object->semaphore, 0, 1);
    objects.push_back(object);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::vector<char> cold(1u << 20);
      for (int round = 0; round < kRounds; ++round) {
        Shared* object = objects[static_cast<size_t>(round % kObjects)];
        pthread_mutex_lock(&object->mutex);
        while (object->turn % kThreads != t) pthread_cond_wait(&object->changed, &object->mutex);
        ++object->turn;
        object->sum = object->sum * 3 + t;
        pthread_cond_broadcast(&object->changed);
        pthread_mutex_unlock(&object->mutex);
        pthread_rwlock_wrlock(&object->rwlock);
        ++object->sum;
        pthread_rwlock_unlock(&object->rwlock);
        sem_wait(&object->semaphore);
        --object->sum;
        sem_post(&object->semaphore);
        for (size_t i = 0; i < cold.size(); i += 4096) ++cold[i];
      }
    });
  for (auto& thread : threads) thread.join();
  long turns = 0;
  for (Shared* object : objects) turns += object->turn;
  std::printf("turns %ld\n", turns);
  return 0;
}

int standard_locks(long) {
  struct All {
    std::mutex mutex;
    std::condition_variable_any any;
    std::condition_variable changed;
    std::shared_mutex shared;
    std::recursive_timed_mutex recursive;
    std::once_flag once;
    std::vector<int> queue;
    bool done = false;
    long sum = 0, begun = 0;
  };
  auto all = std::make_shared<All>();
  std::vector<std::thread> consumers;
  for (int t = 0; t < 4; ++t)
    consumers.emplace_back([all] {
      std::call_once(all->once, [&] { ++all->begun; });
      for (;;) {
        std::unique_lock lock(all->mutex);
        all->changed.wait(lock, [&] { return all->done || !all->queue.empty(); });
        if (all->queue.empty()) return;
        int n = all->queue.back();
        all->queue.pop_back();
        lock.unlock();
        std::unique_lock write(all->shared);
        std::lock_guard twice(all->recursive), again(all->recursive);
        all->sum += n;
      }
    });
  for (int i = 0; i < 20'000; ++i) {
    std::lock_guard lock(all->mutex);
    all->queue.push_back(i);
    all->changed.notify_one();
  }
  {
    std::lock_guard lock(all->mutex);
    all->done = true;
  }
  all->changed.notify_all();
  for (auto& thread : consumers) thread.join();
  std::printf("sum %ld, once %ld\n", all->sum, all->begun);
  return 0;
}

// std::atomic::wait and what is built on it make futex calls from instrumented code.
int atomic_waits(long) {
  auto latch = std::make_unique<std::latch>(4);
  auto barrier = std::make_unique<std::barrier<>>(4);
  auto semaphore = std::make_unique<std::counting_semaphore<>>(1);
  auto flag = std::make_unique<std::atomic<int>>(0);
  auto total = std::make_unique<long>(0);
  std::atomic<pid_t> workers[4]{}, sleepers_at_zero[3]{};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      latch->arrive_and_wait();
      for (int i = 0; i < 200; ++i) {
        semaphore->acquire();
        ++*total;
        semaphore->release();
        barrier->arrive_and_wait();
      }
      flag->wait(0);
      workers[t] = gettid();
      flag->wait(1);
    });
  std::vector<std::thread> sleepers;
  for (int t = 0; t < 3; ++t)
    sleepers.emplace_back([&, t] {
      sleepers_at_zero[t] = gettid();
      flag->wait(0);
    });
  for (const auto& thread : sleepers_at_zero) await_asleep(thread);  // past spinning
  *flag = 1;
  flag->notify_all();
  for (auto& thread : sleepers) thread.join();
  for (const auto& thread : workers) await_asleep(thread);
  *flag = 2;
  flag->notify_all();
  for (auto& thread : threads) thread.join();
  std::printf("total %ld\n", *total);
  return 0;
}

uint64_t sum_range(const std::vector<uint64_t>& numbers, size_t from, size_t to) {
  if (to - from < 200'000) {
    uint64_t sum = 0;
    for (size_t i = from; i < to; ++i) sum += numbers[i] * i;
    return sum;
  }
  size_t middle = from + (to - from) / 2;
  auto left = std::async(std::launch::async, sum_range, std::cref(numbers), from, middle);
  uint64_t right = sum_range(numbers, middle, to);
  return left.get() + right;
}

int futures(long) {
  std::vector<uint64_t> numbers(2'000'000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = i * i;
  print_sum("sum", sum_range(numbers, 0, numbers.size()));
  std::promise<std::string> promise;
  auto future = promise.get_future();
  std::thread sender([&] { promise.set_value(std::string(3'000'000, 'p')); });
  std::printf("%zu\n", future.get().size());
  sender.join();
  std::packaged_task<int(int)> task([](int n) -> int { throw n * 2; });
  auto failing = task.get_future();
  std::thread(std::move(task), 21).join();
  try {
    failing.get();
  } catch (int n) {
    std::printf("thrown %d\n", n);
  }
  return 0;
}

struct Nested {
  pthread_key_t key;
} keys;
int key_destructors(long) {
  pthread_key_create(&keys.key, [](void* value) {
    auto* numbers = static_cast<uint64_t*>(value);
    uint64_t sum = 0;
    for (int i = 0; i < 600'000; ++i) sum += numbers[i];
    std::printf("key destructor %llu\n", static_cast<unsigned long long>(sum));
    if (sum > 100) {  // another round of destructors
      numbers[0] = 0;
      for (int i = 0; i < 600'000; ++i) numbers[i] = 0;
      pthread_setspecific(keys.key, numbers);
    } else {
      std::free(numbers);
    }
  });
  for (int t = 0; t < 3; ++t)
    std::thread([] {
      auto* numbers = static_cast<uint64_t*>(std::malloc(600'000 * sizeof(uint64_t)));
      for (int i = 0; i < 600'000; ++i) numbers[i] = static_cast<uint64_t>(i);
      pthread_setspecific(keys.key, numbers);
    }).join();
  return 0;
}

constexpr Part kParts[] = {{"come_and_go", come_and_go},
                           {"interleaved", interleaved},
                           {"atomics", atomics},
                           {"foreign_locks", foreign_locks},
                           {"standard_locks", standard_locks},
                           {"atomic_waits", atomic_waits},
                           {"futures", futures},
                           {"keys", key_destructors}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
