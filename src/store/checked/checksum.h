// The sum that what comes back from a store is compared with, of a page, with a secret of the process's own: no file
// made elsewhere has the right sums. It finds what happens by accident, all but one in 2^64,
// or, where half of it is kept, in 2^32; it is no proof against who can read this process's memory.
//
// Which function it is depends on the processor, and sums of different ones differ: they are compared within a process.
// Rounds of AES come first, as they are the least work for 16 bytes that there is; XXH3 serves where there are none.
// (Of 4 KiB in the cache: 25 ns with VAES, 50 with AES-NI; XXH3 75 with AVX2, 200 with SSE2.)
// Why rounds of AES find it: each lane goes s = round(s ^ m), which for a given m is a permutation of s, and for a
// given s one of m. So a change in a lane stays a change, unless later bytes of that lane are changed by just what
// undoes it; the lanes are then mixed by as many rounds as AES needs for every bit to depend on every other.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spw::store {

inline constexpr size_t kSecretBytes = 256;
struct ChecksumSecret {
  alignas(64) std::byte bytes[kSecretBytes];
};

inline constexpr size_t kSummedBytes = 4096;  // at a time, from an address that is a multiple of 32
using Checksum = uint64_t (*)(const std::byte* data, const ChecksumSecret& secret);

struct NamedChecksum {
  const char* name;
  Checksum function;
  bool (*is_there)();  // on this processor
};
// The fastest first; the last one is always there.
extern const NamedChecksum kChecksums[3];
Checksum checksum_function();

uint64_t checksum_vaes(const std::byte* data, const ChecksumSecret& secret);
uint64_t checksum_aes(const std::byte* data, const ChecksumSecret& secret);
uint64_t checksum_xxh3(const std::byte* data, const ChecksumSecret& secret);

}  // namespace spw::store
