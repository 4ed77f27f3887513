// Copies of a few bytes whose number is not known when compiling: shorter than the call that memcpy is.
#pragma once

#include <cstddef>
#include <cstring>

namespace spw {

inline constexpr size_t kFewBytesMax = 256;

namespace detail {
// kBytes <= bytes <= 2 * kBytes: the first and the last kBytes, which overlap.
template <size_t kBytes>
inline void copy_ends(char* to, const char* from, size_t bytes) {
  char first[kBytes], last[kBytes];
  std::memcpy(first, from, kBytes);
  std::memcpy(last, from + bytes - kBytes, kBytes);
  std::memcpy(to, first, kBytes);
  std::memcpy(to + bytes - kBytes, last, kBytes);
}
}  // namespace detail

// As memcpy.
inline void copy_few_bytes(void* to, const void* from, size_t bytes) {
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  for (; bytes > 32; target += 16, source += 16, bytes -= 16) std::memcpy(target, source, 16);
  if (bytes >= 16)
    detail::copy_ends<16>(target, source, bytes);
  else if (bytes >= 8)
    detail::copy_ends<8>(target, source, bytes);
  else if (bytes >= 4)
    detail::copy_ends<4>(target, source, bytes);
  else if (bytes >= 2)
    detail::copy_ends<2>(target, source, bytes);
  else if (bytes == 1)
    *target = *source;
}

}  // namespace spw
