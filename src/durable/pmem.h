// Persistent memory, or memory that stands for it (tmpfs, as in the paper's
// evaluation, section IV-A): lines are written back with the instruction that is asked
// for, if the processor has it (clwb, clflushopt, clflush), and ordered by sfence.
//
// Threads: any. Errors: none; such memory has no failed writes.
#pragma once

#include "durable/persistence.h"
#include "platform/cache_lines.h"

namespace spw::durable {

std::unique_ptr<Persistence> make_pmem(
    platform::LineInstruction instruction = platform::LineInstruction::kBest);

}  // namespace spw::durable
