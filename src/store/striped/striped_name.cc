#include "store/striped/striped_name.h"

#include <algorithm>

#include "base/units.h"

namespace spw::store {

namespace {

std::string with_commas(std::string name) {
  for (size_t at = 0; (at = name.find("%2C", at)) != name.npos; ++at) name.replace(at, 3, ",");
  return name;
}

}  // namespace

Result<StripedName> parse_striped(std::string_view rest, uint64_t chunk_bytes_default) {
  constexpr std::string_view kChunk = "chunk=";
  auto refused = [&](const std::string& why) {
    return Status::sentence(EINVAL, std::string(kStripedScheme) + std::string(rest) + ": " + why);
  };
  StripedName name;
  name.chunk_bytes = chunk_bytes_default;
  for (size_t begin = 0; begin <= rest.size();) {
    const size_t end = std::min(rest.find(',', begin), rest.size());
    const std::string_view part = rest.substr(begin, end - begin);
    if (begin == 0 && part.starts_with(kChunk)) {
      const auto chunk = parse_size_bytes(part.substr(kChunk.size()));
      if (!chunk) return refused("chunk has to be a size such as 256K");
      name.chunk_bytes = *chunk;
    } else if (name.members.size() == kStripedMembersMax) {
      return refused("it can have " + std::to_string(kStripedMembersMax) + " members at most");
    } else {
      name.members.push_back(with_commas(std::string(part)));
    }
    begin = end + 1;
  }
  return name;
}

}  // namespace spw::store
