/* What a library that was never recompiled offers. */
#ifndef FOREIGN_LIBRARY_H
#define FOREIGN_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct foreign_node {
  struct foreign_node* next;
  uint64_t value;
};

uint64_t foreign_sum(const uint64_t* words, size_t count);
void foreign_add(uint64_t* words, size_t count, size_t stride, uint64_t value);
void foreign_atomic_add(uint64_t* words, size_t count, size_t stride);
void foreign_copy(char* to, const char* from, size_t bytes);
struct foreign_node* foreign_push(struct foreign_node* list, uint64_t value);
void foreign_each(const uint64_t* words, size_t count, void (*call)(const uint64_t*, void*), void* context);

#ifdef __cplusplus
}
#endif

#endif
