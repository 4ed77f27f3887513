// What the table of libc's own functions (real.h) needs where glibc is older than the one this is built with, down to
// 2.31.
//
// Threads: newest_version() one at a time.
#pragma once

#include <string_view>

namespace spw::libc {

// Functions that glibc 2.31 does not have, made of system calls. Programs built for it do not call them by these
// names; the runtime does, on behalf of `__xstat` and its kin. nullptr: there is none of that name.
void* stand_in_for(std::string_view name);

// Before glibc 2.36, dlsym(RTLD_NEXT) finds the oldest version of a function that has several, not the one that
// programs are linked with: of pthread_cond_wait one that takes another pthread_cond_t. `found`: what it found; as it
// is if that is not glibc's.
void* newest_version(void* found, const char* name);

}  // namespace spw::libc
