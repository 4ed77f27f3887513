// How a persistent region lies in its file, which is mapped at the address that the file itself names.
//
//     0                 Header              what never changes, and two words that do
//     roots_offset      Root[kRootsMax]     names of objects, each with a checksum
//     slots_offset      SlotWord[slots]     a line each: up to which section the slot's log is history
//     logs_offset       first log segment of each slot, segment_bytes each
//     chunks_offset     chunk words[capacity / kChunkBytes]
//     heap_offset       chunks of kChunkBytes: objects, and further log segments
//
// Every word that is changed outside of a section (epoch, slots, chunks) changes by one store of 8 bytes, which a crash
// leaves as it was or as it should be, and carries its own check (checked_word.h). A root changes under the log of a
// section, with its checksum; so does the byte that says whether an object is allocated, which is its own check
// (StateBytes). None of these is zeros, so that what reads as zeros is damage. Of new regions: words of slots and roots
// are zeros until the first recovery has written them, which the epoch's number tells; the words of chunks are written
// before the file has the chunks.
// Contents of objects are the program's own stores: nothing covers them but the log of an open section.
//
// A slot's log is a chain of records, from the start of its first segment on:
//
//     checksum 8 | section 8 | stamp 8 | address 8 | bytes 4 | kind 4 | payload, padded to 8
//
// The checksum covers all of it, the region's identity and epoch and the slot's number, so that what an earlier use
// left behind is no record. Records of a section that the slot's word names, or an earlier one, are history. (Atlas:
// Chakrabarti, Boehm, Bhandari, OOPSLA 2014; its undo log, with the tail found by checksums instead of a pointer, so
// that a record costs one fence.)
//
// Limits: those named here. Positions are valid only at the address in the header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "durable/checked_word.h"

namespace spw::durable {

inline constexpr uint64_t kMagic = 0x31454C4241525544;  // "DURABLE1"
inline constexpr uint32_t kVersion = 2;  // 1 had no checks of chunks, roots, states and the epoch

inline constexpr unsigned kLineShift = 6;  // a line of the processor's caches
inline constexpr uint64_t kLineBytes = uint64_t{1} << kLineShift;
inline constexpr uint64_t kChunkBytes = 64 * kKiB;
inline constexpr uint32_t kRootsMax = 256;
inline constexpr size_t kRootNameMax = 47;
inline constexpr uint32_t kSlotsMax = 1024;
// Of a record's payload: longer stores are several records.
inline constexpr uint32_t kPayloadMax = 16 * kKiB;

struct Header {
  uint64_t magic;
  uint32_t version;
  uint32_t slots;
  uint64_t identity;  // random; part of every record's checksum
  uint64_t base;      // the address at which the region is mapped
  uint64_t capacity_bytes;
  uint64_t segment_bytes;
  uint64_t roots_offset, slots_offset, logs_offset, chunks_offset, heap_offset;
  uint64_t checksum;  // of all before
  // What changes: how often the region was recovered, as a checked word. It is part of every record's checksum: when a
  // recovery has undone what it must, one store of this word makes all logs history at once.
  uint64_t epoch;
};

struct Root {
  char name[kRootNameMax + 1];  // empty: free
  uint64_t address;
  uint64_t checksum;  // of all before, the region and the root's number
};

// A checked word: the number of the last section that is history.
struct SlotWord {
  uint64_t word;
  uint64_t padding[7];
};

inline WordPlace epoch_place(const Header& header) { return {header.identity, WordKind::kEpoch, 0}; }
inline WordPlace slot_place(const Header& header, uint32_t slot) {
  return {header.identity, WordKind::kSlot, slot};
}
inline WordPlace chunk_place(const Header& header, uint64_t chunk) {
  return {header.identity, WordKind::kChunk, chunk};
}

enum class ChunkKind : uint8_t { kFree = 0, kObjects = 1, kLarge = 2, kRest = 3, kLog = 4 };

// What the checked word of a chunk says:
//     kind 8 | size class 8 | chunks of the run 31 (large and log: in their first chunk)
struct ChunkWord {
  ChunkKind kind = ChunkKind::kFree;
  uint8_t size_class = 0;
  uint32_t chunks = 0;

  static ChunkWord of(uint64_t word) {
    const uint64_t payload = payload_of(word);
    return {static_cast<ChunkKind>(payload & 0xFF), static_cast<uint8_t>(payload >> 8),
            static_cast<uint32_t>(payload >> 16)};
  }
  uint64_t word(const WordPlace& place) const {
    return checked_word(static_cast<uint64_t>(kind) | uint64_t{size_class} << 8 | uint64_t{chunks} << 16,
                        place);
  }
};

// The bytes that say of each object of a chunk whether it is allocated. Its two values have no bit in common, are never
// 0 or 255, and are other ones for each object, chunk and region: flipped bits are found, and so are zeros, and another
// chunk's bytes but for those of one object in 64.
class StateBytes {
 public:
  StateBytes(const Header& header, uint64_t chunk);
  std::byte free(uint64_t object) const {
    // Mixed for each object: were they equally far apart, two chunks would have all in common or nothing.
    uint64_t mixed = mix_ + object * 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93u;
    return (static_cast<std::byte>(mixed >> 56) & std::byte{0x7E}) | std::byte{1};
  }
  std::byte allocated(uint64_t object) const { return ~free(object); }
  bool is_one(uint64_t object, std::byte state) const {
    return state == free(object) || state == allocated(object);
  }

 private:
  uint64_t mix_;
};

enum class RecordKind : uint32_t {
  kOldBytes = 1,   // what stood at `address` before the section stored to it
  kDependsOn = 2,  // payload: the section of another slot that this one has seen something of (Dependence)
  kComplete = 3,   // the section has ended; everything it stored is in place
  kJump = 4,       // the log goes on at `address`
};

struct Record {
  uint64_t checksum;
  uint64_t section;
  // A Lamport clock: of two stores to one address, of which the later
  // one could know of the earlier, the later has the larger.
  uint64_t stamp;
  uint64_t address;
  uint32_t bytes;  // of payload
  RecordKind kind;
};
static_assert(sizeof(Record) == 40);

constexpr uint64_t record_bytes(uint32_t payload_bytes) {
  return sizeof(Record) + round_up(payload_bytes, 8);
}

// Section `section` of slot `slot`.
struct Dependence {
  uint64_t slot;
  uint64_t section;
};

uint64_t checksum_of(const Header& header);
uint64_t checksum_of(const Root& root, const Header& header, uint32_t number);
// `payload` follows the record in memory. `seed`: log_seed().
uint64_t checksum_of(const Record& record, uint64_t seed);
uint64_t log_seed(const Header& header, uint32_t slot);

// Where things lie for these sizes; all but the checksum is filled in.
struct LayoutOptions {
  uint64_t base = 0;
  uint64_t capacity_bytes = 64 * kGiB;
  uint32_t slots = 64;
  uint64_t segment_bytes = 64 * kKiB;
};
Header make_header(const LayoutOptions& options, uint64_t identity);
// Bytes at the start of the file that a new region needs: everything up to the heap.
inline uint64_t fixed_bytes(const Header& header) { return header.heap_offset; }

}  // namespace spw::durable
