// The parts of a store's name that several stores share: what stands before the '?', and the parameters behind it.
//
//     PATH?name=value&name=value
//
// Errors: EINVAL with a sentence that names the store's whole name. Threads: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace spw::store {

struct Uri {
  std::string path;                                            // as it was written
  std::map<std::string, std::string, std::less<>> parameters;  // values decoded
  std::string whole;                                           // for messages

  const std::string* find(std::string_view name) const;
  // The parameter as a size of at least 1 byte; nothing when it is not there.
  Result<std::optional<uint64_t>> size(std::string_view name) const;
  // The parameter as a number in [least, most]; `fallback` when it is not there.
  Result<uint64_t> number(std::string_view name, uint64_t least, uint64_t most, uint64_t fallback) const;
};

// `scheme` ("sparse:") is what stood before `rest`. A parameter that is not among `known`, or comes twice, is an error.
Result<Uri> parse_uri(std::string_view scheme, std::string_view rest,
                      std::span<const std::string_view> known);

// "%2C" -> ","; nothing for a '%' that no two hexadecimal digits follow.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace spw::store
