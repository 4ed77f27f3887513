// A trace: which data were accessed, in order. What a datum is, a block or a cache line, is the caller's business.
//
// Times are logical: the first access of a trace happens at time 1, each later one a unit after the one before.
#pragma once

#include <cstdint>
#include <span>

namespace spw::locality {

using Datum = uint64_t;
using Trace = std::span<const Datum>;

}  // namespace spw::locality
