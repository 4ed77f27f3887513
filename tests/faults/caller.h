// Who makes a call, and whether it counts (fail_nth.c). Threads: one. Errors: what cannot be found out about a process
// that ends meanwhile is as if it were not there.
#pragma once

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { kPage = 4096 };

// A file of /proc of a thread or process; NULL: it is gone.
FILE* open_of(pid_t id, const char* name);
pid_t process_of(pid_t thread);
// After an exec of a process: its dynamic linker is another one.
void forget_linker(pid_t process);
// The head of fail_nth.c says which calls do not count.
bool is_counted(pid_t process, const struct seccomp_data* call);
// What brk returns instead of an error: the break as it is.
int64_t break_of(pid_t process);
// Makes half of a read or write in the caller's place, and returns the bytes moved; -1: it cannot be halved.
int64_t half_of(pid_t process, const struct seccomp_data* call);
