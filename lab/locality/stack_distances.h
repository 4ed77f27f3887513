// Stack distances: how many distinct data were accessed between two accesses of one datum, that one included. An LRU
// cache of size c hits exactly where the distance is at most c (Mattson, Gecsei, Slutz, Traiger: "Evaluation techniques
// for storage hierarchies", 1970). The exact curve, in n log n: what the linear-time estimates are held against.
//
// Threads: none. Memory: a word for each access.
#pragma once

#include "locality/miss_ratio_curve.h"
#include "locality/trace.h"

namespace spw::lab {

using locality::Datum;
using locality::MissRatioCurve;
using locality::Trace;

// [d]: accesses with stack distance d; [0]: first accesses.
std::vector<uint64_t> stack_distances(Trace trace);

// First accesses miss at every size.
MissRatioCurve exact_curve(Trace trace);

}  // namespace spw::lab
