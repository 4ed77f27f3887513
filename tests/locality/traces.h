// What tests of this folder share: small traces, written as text or random.
#pragma once

#include <string_view>
#include <vector>

#include "base/rng.h"
#include "locality/trace.h"

namespace spw::locality {

inline std::vector<Datum> trace_of(std::string_view letters) {
  return std::vector<Datum>(letters.begin(), letters.end());
}

inline std::vector<Datum> random_trace(Rng& rng, uint64_t accesses, uint64_t data) {
  std::vector<Datum> trace(accesses);
  for (Datum& datum : trace) datum = rng.below(data);
  return trace;
}

}  // namespace spw::locality
