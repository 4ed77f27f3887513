// Compiled with -maes, and called where there is that.
#include <immintrin.h>

#include "store/checked/checksum.h"

namespace spw::store {

namespace {
constexpr size_t kLanes = 8;
}

uint64_t checksum_aes(const std::byte* data, const ChecksumSecret& secret) {
  const auto* from = reinterpret_cast<const __m128i*>(data);
  const auto* keys = reinterpret_cast<const __m128i*>(secret.bytes);
  const __m128i key = keys[kLanes];
  __m128i lanes[kLanes];
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = keys[i];
  for (size_t at = 0; at < kSummedBytes / sizeof(__m128i); at += kLanes)
    for (size_t i = 0; i < kLanes; ++i)
      lanes[i] = _mm_aesenc_si128(_mm_xor_si128(lanes[i], from[at + i]), key);
  __m128i all = key;
  for (const __m128i lane : lanes)
    all = _mm_aesenc_si128(_mm_aesenc_si128(_mm_aesenc_si128(_mm_xor_si128(all, lane), key), key), key);
  return static_cast<uint64_t>(_mm_cvtsi128_si64(all));
}

}  // namespace spw::store
