// Whole blocks from and to a store that may move less than it was asked for, fail or throw.
//
// Threads: any. Errors: 0, or a positive errno; nothing is thrown.
#pragma once

#include "umap/store/Store.hpp"

namespace Umap {

// A store that is interrupted (EINTR) or is not ready (EAGAIN) is asked again so many times in a row.
inline constexpr unsigned kRetriesMax = 3;

// What lies behind the store's end becomes zeros.
int read_whole(Store& store, char* buffer, std::size_t bytes, off_t offset) noexcept;
// EIO when the store takes nothing.
int write_whole(Store& store, const char* buffer, std::size_t bytes, off_t offset) noexcept;

}  // namespace Umap
