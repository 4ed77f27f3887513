// Streams: libc's, and those of buffered files.
//
// A FILE is native memory whatever is managed, since libc's fork() writes to each in the
// child, which has no managed memory. (What it reads and writes through is allocated later,
// and may be managed where system calls can use it.) libc's streams read and write by system
// calls of their own; one of a buffered file has functions of ours instead (fopencookie(3)).
//
// Threads: any. Errors: libc's.
#pragma once

#include <stdio.h>
#include <sys/types.h>

namespace spw::libc {

FILE* open_stream(const char* path, const char* mode);
FILE* stream_of_descriptor(int fd, const char* mode);
// The standard streams, mostly, which have to stay where they are: the file is the kernel's from then on.
FILE* reopen_stream(const char* path, const char* mode, FILE* file);
FILE* open_command(const char* command, const char* mode);

}  // namespace spw::libc
