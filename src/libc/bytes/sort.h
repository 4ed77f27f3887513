// qsort and bsearch on arrays that may be managed.
//
// A managed array is sorted as one sorts what does not fit in memory: runs of kSortRunBytes are sorted in native memory
// by libc, then merged, up to kMergeRunsMax at a time, through native buffers into a managed array of the same size.
// Each pass reads and writes the array once, in order. The comparator only ever sees native copies of elements, which
// do not move while it runs. Stable where libc's qsort is. Where there is no room for the second array, or an element
// is larger than a run, elements are sorted in place by heapsort through the comparator on native copies.
// Threads: any. Limits: kSortRunBytes + kMergeRunsMax * kMergeBufferBytes of native memory a call.
#pragma once

#include <cstddef>

namespace spw::libc {

inline constexpr size_t kSortRunBytes = 1024 * 1024;
inline constexpr size_t kMergeRunsMax = 64;
inline constexpr size_t kMergeBufferBytes = 16 * 1024;

using Comparator = int (*)(const void*, const void*);
using ContextComparator = int (*)(const void*, const void*, void*);

}  // namespace spw::libc

extern "C" {
void __spw_qsort_v1(void* base, size_t count, size_t bytes, spw::libc::Comparator compare);
void __spw_qsort_r_v1(void* base, size_t count, size_t bytes, spw::libc::ContextComparator compare,
                      void* context);
void* __spw_bsearch_v1(const void* key, const void* base, size_t count, size_t bytes,
                       spw::libc::Comparator compare);
}
