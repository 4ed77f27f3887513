/* Compiled without instrumentation: reads and writes what it is given. */
#include "foreign_library.h"

#include <stdlib.h>
#include <string.h>

uint64_t foreign_sum(const uint64_t* words, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}

void foreign_add(uint64_t* words, size_t count, size_t stride, uint64_t value) {
  for (size_t i = 0; i < count; i += stride) words[i] += value;
}

void foreign_atomic_add(uint64_t* words, size_t count, size_t stride) {
  for (size_t i = 0; i < count; i += stride) __atomic_fetch_add(&words[i], 1, __ATOMIC_SEQ_CST);
}

void foreign_copy(char* to, const char* from, size_t bytes) {
  while (bytes--) *to++ = *from++;
}

struct foreign_node* foreign_push(struct foreign_node* list, uint64_t value) {
  struct foreign_node* node = malloc(sizeof *node);
  node->next = list;
  node->value = value;
  return node;
}

void foreign_each(const uint64_t* words, size_t count, void (*call)(const uint64_t*, void*), void* context) {
  for (size_t i = 0; i < count; ++i) call(&words[i], context);
}
