#define XXH_INLINE_ALL
#include "store/checked/checksum.h"

#include <xxhash.h>

namespace spw::store {

uint32_t checksum_sse2(const std::byte* data, const ChecksumSecret& secret) {
  return static_cast<uint32_t>(XXH3_64bits_withSecret(data, kSummedBytes, secret.bytes, kSecretBytes));
}

Checksum checksum_function() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") ? checksum_avx2 : checksum_sse2;
}

}  // namespace spw::store
