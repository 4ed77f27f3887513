// The heap of a persistent region: allocation and freeing that are part of the section they happen in.
//
// Chunks of kChunkBytes belong to a size class, to one large object, or to a log. A chunk of a class begins with one
// byte an object, which says whether it is allocated (StateBytes). That byte is all that an allocation changes in the
// region, under the section's undo log, so sections of different threads never share what they may have to restore.
// Which objects are free is known in memory only, and is read from the bytes of a chunk when its class first needs an
// object after the region was opened. An object that was freed is handed out again only when its section is history.
//
// Words of chunks change outside of sections, each by one store of 8 bytes:
// a chunk that was made one of a class and never used is just empty. Chunks that the file gets are free ones by their
// words before it has them, so that each chunk of the file has a word that was written.
// Errors: EILSEQ, from any of these, is a state that is neither: nothing of its chunk is handed out.
//
// Threads: any; a slot is its owner's. Limits: the region's capacity; chunks of a class stay that class's.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "durable/sections.h"

namespace spw::durable {

// Makes the region's file longer. Called by one at a time.
class Grower {
 public:
  // The file has at least `bytes` from now on, with space for them. ENOSPC, EDQUOT.
  virtual Status grow_to(uint64_t bytes) = 0;

 protected:
  ~Grower() = default;
};

class Objects final : public SegmentSource, public FreedObjects {
 public:
  // `bytes`: of the file so far. After recovery; nobody else uses the region yet.
  Objects(const RegionView& region, uint64_t bytes, Persistence& domain, Grower& grower);

  // At least 16 bytes, aligned to 16; a multiple of 64 is aligned to 64. Contents are undefined. ENOSPC, ENOMEM.
  Result<uint64_t> allocate(Slot& slot, uint64_t bytes, uint64_t stamp);
  // EINVAL: no object begins there, or it is free already.
  Status free(Slot& slot, uint64_t address, uint64_t stamp);
  // Bytes of the object that begins at `address`; 0: none does.
  uint64_t size_of(uint64_t address) const;

  Result<Segment> take_segment(uint64_t bytes_min) override;
  void are_free(const std::vector<uint64_t>& addresses) override;

  bool is_heap(uintptr_t address, uint64_t bytes) const {
    const uint64_t offset = address - heap_address_, size = heap_bytes_.load_relaxed();
    return offset < size && bytes <= size - offset;
  }

 private:
  // Where an object's byte is.
  struct Place {
    uint64_t chunk = 0;
    uint64_t index = 0;  // in the chunk
    uint64_t state = 0;  // the byte's address; 0: there is no such object
    uint64_t bytes = 0;
  };
  Place place_of(uint64_t address) const;
  Result<uint64_t> take_small(unsigned size_class);
  Result<uint64_t> take_large(uint64_t bytes);
  Status scan(unsigned size_class, uint64_t chunk);
  Result<uint64_t> take_chunks(uint64_t count);
  Status grow(uint64_t chunks);
  void give_chunks_back(uint64_t first, uint64_t count);
  Status write_words(uint64_t chunk, uint64_t count, ChunkKind kind, uint8_t size_class);
  Status write_states(uint64_t chunk, uint64_t objects);
  uint64_t address_of(uint64_t chunk) const;
  uint64_t chunk_of(uint64_t address) const;
  ChunkWord word(uint64_t chunk) const;

  const RegionView& region_;
  Grower& grower_;
  const std::unique_ptr<Persistence::Writer> writer_;
  mutable std::mutex mutex_;  // all below, and writer_
  uint64_t bytes_;
  const uint64_t heap_address_;
  Atomic<uint64_t> heap_bytes_;             // of bytes_, for those who do not take the mutex
  std::map<uint64_t, uint64_t> free_runs_;  // first chunk -> how many
  struct Class {
    std::vector<uint64_t> free;  // addresses
    // Chunks of which that is not known yet. One of them is scanned before an object of it is freed: from then on its
    // bytes say less than the list does.
    std::set<uint64_t> unscanned;
  };
  std::vector<Class> classes_;
};

// What the table says of the chunks from `chunk` on: how many belong together, and what is wrong with it.
struct ChunkRun {
  ChunkWord word;
  uint64_t chunks =
      1;  // of a live large object all of its; of a log, or a dead one, those that are nobody else's
  bool is_live = false;         // large: its object is allocated
  const char* fault = nullptr;  // nothing is: null
};
ChunkRun chunk_run(const RegionView& region, uint64_t chunk);
// EILSEQ: the table has a word that no version writes; the message says which. What is not understood is not free
// space.
Status check_chunks(const RegionView& region);

// Sizes of the classes, rising.
inline constexpr uint32_t kObjectBytes[] = {16,  32,  48,   64,   96,   128,  192,  256,  384,
                                            512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 16384};
inline constexpr size_t kClasses = std::size(kObjectBytes);
// Objects of a chunk of the class, and the first one's offset in it.
constexpr uint64_t objects_of(unsigned size_class) {
  uint64_t count = kChunkBytes / (kObjectBytes[size_class] + 1);
  while (round_up(count, kLineBytes) + count * kObjectBytes[size_class] > kChunkBytes) --count;
  return count;
}
constexpr uint64_t first_object_of(unsigned size_class) {
  return round_up(objects_of(size_class), kLineBytes);
}
// A large object's byte is the first of its first chunk, and the object begins a line behind it.
inline constexpr uint64_t kLargeOffset = kLineBytes;

}  // namespace spw::durable
