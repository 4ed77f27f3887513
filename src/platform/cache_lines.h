// Writing lines of the processor's caches back to memory, and the fence that orders it.
//
// Threads: any; a fence orders the write-backs of its own thread.
#pragma once

namespace spw::platform {

// The instruction that this processor has for it: clwb (the line stays cached), clflushopt, clflush. It does not wait.
using LineWriteBack = void (*)(const void* line);
LineWriteBack line_write_back();
// "clwb", "clflushopt" or "clflush".
const char* line_write_back_name();

// Waits until the lines that this thread began to write back are in the domain that the platform keeps over a power failure.
void store_fence();

}  // namespace spw::platform
