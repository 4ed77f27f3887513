// A thread that has so much data that what the rest of the program has is evicted, and written, all the time.
#ifndef PRESSURE_H
#define PRESSURE_H

#include <pthread.h>
#include <stddef.h>

enum { kPressure = 48 << 20, kPage = 4096 };

static int is_over;  // the thread ends

// `data`: kPressure bytes.
static void press_once(char* data, int round) {
  for (int i = 0; i < kPressure; i += kPage) data[i] = (char)(data[i] + round);
}

static void* press(void* data) {
  for (int round = 1; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); ++round) press_once((char*)data, round);
  return NULL;
}

static pthread_t begin_pressure(char* data) {
  pthread_t presser;
  pthread_create(&presser, NULL, press, data);
  return presser;
}

static void end_pressure(pthread_t presser) {
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  pthread_join(presser, NULL);
}

#endif
