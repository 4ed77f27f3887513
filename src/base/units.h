// Sizes in bytes and in blocks, and sizes as people write them.
//
// A block is 2^shift bytes, kMinBlockShift <= shift <= kMaxBlockShift.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spw {

inline constexpr uint64_t kKiB = uint64_t{1} << 10;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;
inline constexpr uint64_t kTiB = uint64_t{1} << 40;

inline constexpr unsigned kMinBlockShift = 12;
inline constexpr unsigned kMaxBlockShift = 21;
inline constexpr uint64_t kMmuPageBytes = 4096;
inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

constexpr uint64_t round_up(uint64_t value, uint64_t power_of_two) {
  return (value + power_of_two - 1) & ~(power_of_two - 1);
}
constexpr uint64_t round_down(uint64_t value, uint64_t power_of_two) { return value & ~(power_of_two - 1); }
constexpr bool is_power_of_two(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

// Reads "4096", "512M", "4GiB", "1.5g", "64kb": a number, then an optional unit of K, M, G or T with an
// optional "B" or "iB". Units are powers of 1024, in either case. Nothing for anything else, and for a value over 2^63.
std::optional<uint64_t> parse_size_bytes(std::string_view text);

// "4.0 GiB", "512 B": for people to read.
std::string format_size(uint64_t bytes);

}  // namespace spw
