// stdio calls on buffers and strings that may be managed. A FILE and its own buffer are libc's and native.
//
// A call on a managed buffer holds the FILE's lock for all its pieces, so threads see it as one call.
// Threads: any.
#pragma once

#include <stdio.h>
#include <sys/types.h>

namespace spw::libc {

size_t read_file(void* buffer, size_t bytes, size_t count, FILE* file);
size_t write_file(const void* buffer, size_t bytes, size_t count, FILE* file);

}  // namespace spw::libc

extern "C" {
size_t __spw_fread_v1(void* buffer, size_t bytes, size_t count, FILE* file);
size_t __spw_fwrite_v1(const void* buffer, size_t bytes, size_t count, FILE* file);
char* __spw_fgets_v1(char* buffer, int bytes, FILE* file);
int __spw_fputs_v1(const char* text, FILE* file);
int __spw_puts_v1(const char* text);
ssize_t __spw_getline_v1(char** line, size_t* bytes, FILE* file);
ssize_t __spw_getdelim_v1(char** line, size_t* bytes, int delimiter, FILE* file);
}
