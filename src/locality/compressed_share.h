// What share of the memory is best for compressed pages: a miss less on the device against a page more that has to be
// opened first (Wilson, Kaplan, Smaragdakis, "The Case for Compressed Caching in Virtual Memory Systems", USENIX 1999).
//
//     |<---------------- memory_bytes ----------------->|
//     |  frames (uncompressed)       |  pool: `share`   |
//
// Of what left the frames and came back it is known with how many bytes more of them it would not have left: its
// distance (ghost_distances.h). With a share for which the frames are `less` bytes less than now
//
//     distance in (-less, -less + reach]    comes from the pool, as far as it compresses
//     beyond                                comes from the device
//     below                                 is not missed at all
//     reach = what the pool holds, uncompressed, less what is in the frames as well
//
// Nothing is known of what is used within the frames: there, it is taken to be as dense as as far beyond them.
// Pure. Times in nanoseconds of one page.
#pragma once

#include <cstdint>

#include "locality/gap_histogram.h"

namespace spw::locality {

struct CompressionCosts {
  double page_bytes = 4096;
  double fits = 0;        // of the pages, those that compress
  double kept_bytes = 0;  // what one of these comes to, with what is lost around it
  double compress_ns = 0;
  double open_ns = 0;
  double fault_ns = 0;   // of any miss, beside what follows
  double device_ns = 0;  // of a miss that goes to the device
};

struct SharedMemory {
  uint64_t memory_bytes = 0;  // of frames and pool
  uint64_t frames_bytes = 0;  // as `distances` were seen with
};

// What all misses cost with a pool of `pool_bytes`. `distances`: in bytes, of what came back.
double misses_cost_ns(const GapHistogram& distances, const SharedMemory& memory,
                      const CompressionCosts& costs, uint64_t pool_bytes);

// The best of kShares + 1 sizes of the pool, from none to kShareMax / kShares of the memory.
inline constexpr uint64_t kShares = 32, kShareMax = 30;
uint64_t best_pool_bytes(const GapHistogram& distances, const SharedMemory& memory,
                         const CompressionCosts& costs);

}  // namespace spw::locality
