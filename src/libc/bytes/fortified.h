// What _FORTIFY_SOURCE makes of calls: the same with the room that the compiler knows of. What would not fit ends the
// program as libc does, before anything is written.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

namespace spw::libc {

// `bytes`, if they are no more than `room`.
size_t fitting(size_t bytes, size_t room);
// The same for `count` times `bytes`.
void expect_room(size_t count, size_t bytes, size_t room);

}  // namespace spw::libc

extern "C" {
void* __spw___memcpy_chk_v1(void* to, const void* from, size_t bytes, size_t room);
void* __spw___memmove_chk_v1(void* to, const void* from, size_t bytes, size_t room);
void* __spw___mempcpy_chk_v1(void* to, const void* from, size_t bytes, size_t room);
void* __spw___memset_chk_v1(void* to, int value, size_t bytes, size_t room);
char* __spw___strcpy_chk_v1(char* to, const char* from, size_t room);
char* __spw___stpcpy_chk_v1(char* to, const char* from, size_t room);
char* __spw___strncpy_chk_v1(char* to, const char* from, size_t bytes, size_t room);
char* __spw___strcat_chk_v1(char* to, const char* from, size_t room);
char* __spw___strncat_chk_v1(char* to, const char* from, size_t bytes_max, size_t room);
char* __spw___fgets_chk_v1(char* buffer, size_t room, int bytes, FILE* file);
}
