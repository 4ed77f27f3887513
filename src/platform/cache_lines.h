// Writing lines of the processor's caches back to memory, and the fence that orders it.
//
// Threads: any; a fence orders the write-backs of its own thread.
#pragma once

#include <cstdint>

namespace spw::platform {

// clwb leaves the line cached; the others do not; clflush instructions are not overlapped with each other.
enum class LineInstruction : uint8_t { kBest, kClwb, kClflushopt, kClflush };

// Writes the line back by the instruction that is wanted, if this processor
// has it, else by the next one in the order above. It does not wait.
using LineWriteBack = void (*)(const void* line);
LineWriteBack line_write_back(LineInstruction wanted = LineInstruction::kBest);
// The best one's: "clwb", "clflushopt" or "clflush".
const char* line_write_back_name();

// Waits until the lines that this thread began to write back are in
// the domain that the platform keeps over a power failure.
void store_fence();

}  // namespace spw::platform
