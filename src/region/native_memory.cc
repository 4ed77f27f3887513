#include "region/native_memory.h"

#include <algorithm>

#include "base/units.h"

namespace spw::region {

namespace {
constexpr size_t kMappedAtOnceBytes = 256 * kKiB;
constexpr size_t kPieceAlignment = 64;
}  // namespace

// At the start of every chunk: what unmaps it, and the chunk before.
struct NativeMemory::ChunkHeader {
  platform::Mapping mapping;
  ChunkHeader* previous;
};

NativeMemory::~NativeMemory() {
  while (chunks_ != nullptr) {
    platform::Mapping mapping = std::move(chunks_->mapping);
    chunks_ = chunks_->previous;
  }
}

bool NativeMemory::add_chunk(size_t bytes) {
  // A page for the header, so that page-sized pieces stay page aligned.
  size_t chunk_bytes = std::max(kMappedAtOnceBytes, round_up(bytes, kMmuPageBytes) + kMmuPageBytes);
  auto mapping = platform::map_anonymous(chunk_bytes);
  if (!mapping) return false;
  std::byte* base = mapping->data();
  auto* header = new (base) ChunkHeader{std::move(*mapping), chunks_};
  chunks_ = header;
  next_ = base + kMmuPageBytes;
  end_ = base + chunk_bytes;
  counted_bytes_.fetch_add_relaxed(chunk_bytes);
  return true;
}

void* NativeMemory::take(size_t bytes) {
  bytes = round_up(bytes, kPieceAlignment);
  size_t alignment = bytes % kMmuPageBytes == 0 ? kMmuPageBytes : kPieceAlignment;
  std::lock_guard lock(mutex_);
  auto start = round_up(reinterpret_cast<uintptr_t>(next_), alignment);
  if (next_ == nullptr || start + bytes > reinterpret_cast<uintptr_t>(end_)) {
    if (!add_chunk(bytes)) return nullptr;
    start = reinterpret_cast<uintptr_t>(next_);
  }
  next_ = reinterpret_cast<std::byte*>(start + bytes);
  return reinterpret_cast<void*>(start);
}

}  // namespace spw::region
