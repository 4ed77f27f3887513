// Who called the runtime: for telling where a large piece of memory was allocated.
//
// Threads: any. Takes no lock, the dynamic loader's neither. x86-64 and glibc 2.35; elsewhere nobody is known.
#pragma once

namespace spw::libc {

// The address that the outermost call into this library returns to: in the program,
// or in a library of its. Where that is libstdc++ (operator new calls malloc), what
// seems to have called it, by the words on the stack. nullptr: not known.
const void* caller_outside();

}  // namespace spw::libc
