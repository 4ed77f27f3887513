// A full memory barrier in every running thread of this process, made by one of them: what one side of a store-load
// race pays so that the other side, the frequent one, needs none but the compiler's.
//
//   frequent side:  store A; std::atomic_signal_fence(seq_cst); load B
//   rare side:      store B; process_barrier();                 load A
//
// Ordering: at least one of them sees the other's store, as with a full fence in each.
// Threads: any. Limits: Linux 4.14; sandboxes may refuse it, and then both sides need the full fence.
#pragma once

namespace spw::platform {

// Registers the process. False: the kernel does not offer it, and process_barrier() must not be called.
bool enable_process_barrier();

// Only after enable_process_barrier() was true. Some microseconds; interrupts the processors that run this process.
void process_barrier();

}  // namespace spw::platform
