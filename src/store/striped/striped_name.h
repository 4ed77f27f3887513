// What stands behind "striped:": "[chunk=SIZE,]NAME,NAME,...". A comma
// inside of a name is written %2C; other escapes belong to the name.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "platform/place_list.h"

namespace spw::store {

inline constexpr std::string_view kStripedScheme = "striped:";
inline constexpr size_t kStripedMembersMax = platform::kPlacesMax;

struct StripedName {
  uint64_t chunk_bytes = 0;
  std::vector<std::string> members;
};

// EINVAL with a sentence for a chunk that is no size, and for more than kStripedMembersMax members.
Result<StripedName> parse_striped(std::string_view rest, uint64_t chunk_bytes_default);

}  // namespace spw::store
