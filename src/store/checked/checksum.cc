#define XXH_INLINE_ALL
#include "store/checked/checksum.h"

#include <xxhash.h>

namespace spw::store {

const NamedChecksum kChecksums[3] = {
    {"vaes", checksum_vaes, [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vaes"); }},
    {"aes", checksum_aes, [] { return __builtin_cpu_supports("aes") != 0; }},
    {"xxh3", checksum_xxh3, [] { return true; }},
};

uint64_t checksum_xxh3(const std::byte* data, const ChecksumSecret& secret) {
  return XXH3_64bits_withSecret(data, kSummedBytes, secret.bytes, kSecretBytes);
}

Checksum checksum_function() {
  __builtin_cpu_init();
  const NamedChecksum* chosen = kChecksums;
  while (!chosen->is_there()) ++chosen;
  return chosen->function;
}

}  // namespace spw::store
