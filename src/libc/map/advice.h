// madvise() on managed memory, value by value as the kernel has it (spillway-regions(7) has the table).
//
// Threads: any. Errors: libc's.
#pragma once

#include <cstddef>

namespace spw::libc {

int advise_mapping(void* address, size_t bytes, int advice);

}  // namespace spw::libc
