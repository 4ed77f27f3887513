// Which size a write-combining cache should have, given its miss-ratio
// curve. (The paper on adaptive software caching, section III-C.)
//
// More lines mean fewer flushes, but more of them at a section's end, where the thread waits. So
// the size is that of a *knee*, up to which the curve falls and after which more lines bring
// little. The paper ranks the decreases of the miss ratio for each size by one line, takes the top
// few as knees, and of these the largest size. Here, decreases that follow each other are one:
//
//   1. An obvious decrease is at least kObviousShare of what is flushed at size 1. With it belong the ones after it as
//      long as they are at least kFaintShare: an estimate smears what is one cliff over some sizes.
//   2. Where they end is a knee. The kKneesMax knees up to which the curve falls most are candidates.
//   3. The candidate with the largest size is chosen.
//   4. With no knee, size 1 is one if it combines an obvious share of
//       all writes and no size saves an obvious share of what is left.
//   5. Otherwise there is no obvious inflection, and the size is size_max.
//
// Threads: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "locality/miss_ratio_curve.h"

namespace spw::durable {

inline constexpr size_t kKneesMax = 5;
// An even decline over 50 sizes, 2 % each, has no knee; a cliff smeared over ten has one.
inline constexpr double kObviousShare = 0.03;
inline constexpr double kFaintShare = 0.0075;

// 1 <= result <= size_max.
uint32_t choose_size(const locality::MissRatioCurve& curve, uint32_t size_max);

}  // namespace spw::durable
