// The sum that what comes back from a store is compared with: half of XXH3 with a secret of the process's own, so that
// no file made elsewhere has the right sums. It finds what happens by accident, all but one in 2^32; it is no proof
// against who can read this process's memory.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spw::store {

inline constexpr size_t kSecretBytes = 192;
struct ChecksumSecret {
  alignas(64) std::byte bytes[kSecretBytes];
};

inline constexpr size_t kSummedBytes = 4096;  // at a time
using Checksum = uint32_t (*)(const std::byte* data, const ChecksumSecret& secret);
// By the widest instructions of this processor that it is built for; all of them say the same.
Checksum checksum_function();

uint32_t checksum_sse2(const std::byte* data, const ChecksumSecret& secret);
uint32_t checksum_avx2(const std::byte* data, const ChecksumSecret& secret);

}  // namespace spw::store
