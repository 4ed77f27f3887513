// Has everything else evicted: a thread that walks through three times as much managed memory as the cap holds, for as
// long as the program runs. Only with CHURN in the environment; the program's output is the same.
// Thousands of programs include this: headers of the C library only, which are read in no time.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>

namespace {

class Churn {
 public:
  Churn() : runs_(getenv("CHURN") && pthread_create(&thread_, nullptr, walk, this) == 0) {}
  ~Churn() {
    if (!runs_) return;
    __atomic_store_n(&stop_, true, __ATOMIC_RELAXED);
    pthread_join(thread_, nullptr);
  }

  // Returns when what was used last is no longer in memory: all of the bytes have been walked through since.
  void wait_for_a_lap() const {
    if (!runs_) return;
    for (const size_t end = walked() + kBytes / kStep + 1; walked() < end;) sched_yield();
  }

 private:
  static constexpr size_t kBytes = size_t{24} << 20;
  static constexpr size_t kStep = 4096;

  static void* walk(void* self) {
    auto* churn = static_cast<Churn*>(self);
    auto* bytes = static_cast<volatile char*>(malloc(kBytes));
    for (size_t i = 0; !__atomic_load_n(&churn->stop_, __ATOMIC_RELAXED); i = (i + kStep) % kBytes) {
      bytes[i] = static_cast<char>(bytes[i] + 1);
      __atomic_fetch_add(&churn->walked_, 1, __ATOMIC_RELAXED);
    }
    free(const_cast<char*>(bytes));
    return nullptr;
  }

  size_t walked() const { return __atomic_load_n(&walked_, __ATOMIC_RELAXED); }

  size_t walked_ = 0;  // in steps
  bool stop_ = false;
  pthread_t thread_ = {};
  const bool runs_;
};

Churn churn;

}  // namespace
