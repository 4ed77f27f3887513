// Compiled with -mavx2 -mvaes, and called where there are those.
#include <immintrin.h>

#include "store/checked/checksum.h"

namespace spw::store {

namespace {
constexpr size_t kPairs = 7;  // of lanes: with the key all of the secret's bytes
}

uint64_t checksum_vaes(const std::byte* data, const ChecksumSecret& secret) {
  const auto* from = reinterpret_cast<const __m256i*>(data);
  const auto* keys = reinterpret_cast<const __m256i*>(secret.bytes);
  const __m256i key = keys[kPairs];
  __m256i pairs[kPairs];
  for (size_t i = 0; i < kPairs; ++i) pairs[i] = keys[i];
  constexpr size_t kVectors = kSummedBytes / sizeof(__m256i), kInRounds = kVectors / kPairs * kPairs;
  for (size_t at = 0; at < kInRounds; at += kPairs)
    for (size_t i = 0; i < kPairs; ++i)
      pairs[i] = _mm256_aesenc_epi128(_mm256_xor_si256(pairs[i], from[at + i]), key);
  for (size_t i = 0; i < kVectors - kInRounds; ++i)
    pairs[i] = _mm256_aesenc_epi128(_mm256_xor_si256(pairs[i], from[kInRounds + i]), key);
  __m256i all = key;
  const auto mix = [&](__m256i with) {
    all = _mm256_xor_si256(all, with);
    for (int round = 0; round < 3; ++round) all = _mm256_aesenc_epi128(all, key);
  };
  for (const __m256i pair : pairs) mix(pair);
  // The two lanes of each pair are two columns so far.
  const __m256i swapped = _mm256_permute2x128_si256(all, all, 1);
  all = _mm256_aesenc_epi128(all, key);
  mix(swapped);
  return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm256_castsi256_si128(all)));
}

}  // namespace spw::store
