// What a device holds, from what stands at its beginning and its end: filesystems, swap, volumes, RAID, encryption,
// partition tables and our own persistent regions, by the signatures that their makers document.
//
// Threads: pure functions. Limits: the common ones; who asks has to treat what is unknown as precious, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace spw::store {

// So much of either end holds all the signatures that are looked for.
inline constexpr uint64_t kKnownBytes = uint64_t{1} << 20;

// "an ext2, ext3 or ext4 filesystem"; "" where nothing is recognised. `begin`: the device's first kKnownBytes.
std::string_view known_at_begin(std::span<const std::byte> begin);
// `end`: the device's last kKnownBytes; `device_bytes`: its size, since some of them count from multiples.
std::string_view known_at_end(std::span<const std::byte> end, uint64_t device_bytes);

}  // namespace spw::store
