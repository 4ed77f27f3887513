// A region in an ordinary file: the process works in private memory (MAP_PRIVATE), and
// blocks of it are written to the file, around the kernel's page cache where the filesystem
// allows it, by nobody but this code. So nothing reaches the file before its log does.
//
// A block holds what several threads stored, of sections that end at different times. fence() therefore copies its
// blocks first, has all logs made durable then, and writes the copies: whatever a copy holds, its record was in a log
// before. One thread at a time does so.
//
// Threads: as Persistence. Errors: EIO and what else the device says, with the offset; nothing is retried, since a
// kernel that failed to write forgets that it did. Limits: kCopiedBlocksMax are copied at a time.
#pragma once

#include "durable/persistence.h"
#include "platform/file.h"

namespace spw::durable {

inline constexpr unsigned kBlockShift = 12;
inline constexpr uint32_t kCopiedBlocksMax = 256;

// `base`: where offset 0 of the file is mapped. `file` outlives what is returned.
std::unique_ptr<Persistence> make_block_writes(const platform::File& file, const std::byte* base);

}  // namespace spw::durable
