// The printf family where system calls cannot use managed memory.
//
// libc writes what exceeds a FILE's buffer from where it is: the rest of a long %s goes from the program's own string
// to write(2), which would fail with EFAULT at the first block that is not there. So the text is made in native memory
// first. Strings are the only arguments this can happen to; a format without one goes to libc as it is.
//
// Threads: any; the text reaches the FILE by one call, so threads see it as one. Limits: texts of more than
// kInlineBytes need that much native memory for the call; without it the call fails with ENOMEM. What another thread
// changes in the arguments meanwhile may be cut off.
#pragma once

#include <stdarg.h>
#include <stdio.h>

namespace spw::libc {

// `flag`: how _FORTIFY_SOURCE calls it (0: it does not).
int print_to_file(FILE* file, int flag, const char* format, va_list arguments);
int print_to_fd(int fd, int flag, const char* format, va_list arguments);

}  // namespace spw::libc
