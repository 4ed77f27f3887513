// Compiled with -mavx2, and called where there is that.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/checked/checksum.h"

namespace spw::store {

uint32_t checksum_avx2(const std::byte* data, const ChecksumSecret& secret) {
  return static_cast<uint32_t>(XXH3_64bits_withSecret(data, kSummedBytes, secret.bytes, kSecretBytes));
}

}  // namespace spw::store
