// Identifiers and counts as distinct types, so that a block number is never taken for a frame number or a byte count.
//
// Threads: values. Lifetime: none. Limits: BlockId holds kBlockIdBits bits (it is packed into the pin word).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace spw {

// An integer that mixes only with its own kind. `Tag` is never defined.
template <class Tag, class Rep>
struct Id {
  using rep = Rep;
  Rep value{};

  constexpr Id() = default;
  constexpr explicit Id(Rep v) : value(v) {}
  constexpr auto operator<=>(const Id&) const = default;
  constexpr Id operator+(Rep n) const { return Id(static_cast<Rep>(value + n)); }
  constexpr Rep operator-(Id other) const { return static_cast<Rep>(value - other.value); }
  constexpr Id& operator++() {
    ++value;
    return *this;
  }
};

// A block of the managed space: (address - base of the managed space) >> block_shift.
using BlockId = Id<struct BlockIdTag, uint64_t>;
// A memory slot that holds a block.
using FrameId = Id<struct FrameIdTag, uint32_t>;
// The owner of a subset of blocks.
using PartitionId = Id<struct PartitionIdTag, uint32_t>;

inline constexpr unsigned kBlockIdBits = 34;
inline constexpr FrameId kNoFrame{UINT32_MAX};
inline constexpr BlockId kNoBlock{UINT64_MAX};

}  // namespace spw

template <class Tag, class Rep>
struct std::hash<spw::Id<Tag, Rep>> {
  size_t operator()(spw::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value); }
};
