// Does what it can with the memory it gets: "wrong 0" if all that it wrote is there again.
//
//   lack: arrays of a MiB, small objects and threads, until any of them is refused; then checks everything.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

namespace {

constexpr size_t kArrays = 32, kWords = (1 << 20) / sizeof(uint64_t), kThreads = 8, kObjects = 20000;

uint64_t* arrays[kArrays];
uint64_t* objects[kObjects];
size_t array_count = 0;

uint64_t value(size_t array, size_t word) { return array * 1000003 + word * 7 + 1; }

void* check(void* from) {
  uintptr_t wrong = 0;
  for (auto a = reinterpret_cast<uintptr_t>(from); a < array_count; a += kThreads)
    for (size_t w = 0; w < kWords; ++w) wrong += arrays[a][w] != value(a, w);
  return reinterpret_cast<void*>(wrong);
}

}  // namespace

int main() {
  for (; array_count < kArrays; ++array_count) {
    uint64_t* array = static_cast<uint64_t*>(malloc(kWords * sizeof(uint64_t)));
    if (!array) break;
    for (size_t w = 0; w < kWords; ++w) array[w] = value(array_count, w);
    arrays[array_count] = array;
  }
  size_t object_count = 0;
  for (; object_count < kObjects; ++object_count) {
    objects[object_count] = static_cast<uint64_t*>(malloc(64));
    if (!objects[object_count]) break;
    *objects[object_count] = object_count;
  }
  uintptr_t wrong = 0;
  pthread_t threads[kThreads];
  bool running[kThreads];
  for (size_t t = 0; t < kThreads; ++t)
    running[t] = pthread_create(&threads[t], nullptr, check, reinterpret_cast<void*>(t)) == 0;
  for (size_t t = 0; t < kThreads; ++t) {
    void* found = nullptr;
    if (running[t])
      pthread_join(threads[t], &found);
    else
      found = check(reinterpret_cast<void*>(t));
    wrong += reinterpret_cast<uintptr_t>(found);
  }
  for (size_t o = 0; o < object_count; ++o) wrong += *objects[o] != o;
  printf("wrong %ju\n", static_cast<uintmax_t>(wrong));
  return wrong != 0;
}
