// Names of images that Spillway makes to spill to:
//
//     spillway.spill.SCOPE.CLIENT      SCOPE: where its process runs (platform::claim_scope()), 16 hexadecimal digits;
//                                      CLIENT: the number of that process's client of the cluster, which gives none
//                                      twice
//
// Threads: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spw::store {

struct SpillImageName {
  uint64_t scope = 0;
  uint64_t client = 0;

  std::string text() const;
  // Nothing: it is no such name, to the letter.
  static std::optional<SpillImageName> parse(std::string_view text);
};

}  // namespace spw::store
