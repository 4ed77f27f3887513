// What is computed from a trace as a whole and for all sizes: its timescale reuse and the curve that follows from it;
// and how far two curves lie apart. (The product watches pieces of a trace and wants small sizes only.)
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "locality/miss_ratio_curve.h"
#include "locality/timescale_reuse.h"
#include "locality/trace.h"

namespace spw::lab {

locality::TimescaleReuse timescale_reuse(locality::Trace trace, uint64_t scale_max = UINT64_MAX);

// The miss ratio at size k - reuse(k) is 1 - (reuse(k + 1) - reuse(k)) (equation 3 of the paper on adaptive software
// caching). Not below the share of first accesses, since the trace is a whole run.
locality::MissRatioCurve curve_of(const locality::TimescaleReuse& reuse);

// The mean of |a.at(s) - b.at(s)| over `steps` sizes at equal distances up to size_max.
double mean_error(const locality::MissRatioCurve& a, const locality::MissRatioCurve& b, double size_max,
                  size_t steps = 100);

}  // namespace spw::lab
