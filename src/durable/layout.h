// How a persistent region lies in its file, which is mapped at the address that the file itself names.
//
//     0                 Header              what never changes, and two words that do
//     roots_offset      Root[kRootsMax]     names of objects
//     slots_offset      SlotWord[slots]     a line each: up to which section the slot's log is history
//     logs_offset       first log segment of each slot, segment_bytes each
//     chunks_offset     ChunkWord[capacity / kChunkBytes]
//     heap_offset       chunks of kChunkBytes: objects, and further log segments
//
// Every word that is changed outside of a section changes by one store
// of 8 bytes, which a crash leaves as it was or as it should be.
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

namespace spw::durable {

inline constexpr uint64_t kMagic = 0x31454C4241525544;  // "DURABLE1"
inline constexpr uint32_t kVersion = 1;

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
  // What changes: how often the region was recovered. It is part of every record's checksum: when a recovery has undone
  // what it must, one store of this word makes all logs history at once.
  uint64_t epoch;
};

struct Root {
  char name[kRootNameMax + 1];  // empty: free
  uint64_t address;
  uint64_t reserved;
};

// The number of the last section that is history in the low 48 bits, and a check of them above: a word that was torn or
// worn is told from one that was written.
struct SlotWord {
  uint64_t word;
  uint64_t padding[7];
};
inline constexpr unsigned kSectionBits = 48;
inline constexpr uint64_t kSectionMask = (uint64_t{1} << kSectionBits) - 1;

uint64_t slot_word(uint64_t section);
bool is_slot_word(uint64_t word);

enum class ChunkKind : uint8_t { kFree = 0, kObjects = 1, kLarge = 2, kRest = 3, kLog = 4 };

// kind 8 | size class 8 | unused 16 | chunks of the run 32 (large and log: in their first chunk)
struct ChunkWord {
  ChunkKind kind = ChunkKind::kFree;
  uint8_t size_class = 0;
  uint32_t chunks = 0;

  static ChunkWord of(uint64_t word) {
    return {static_cast<ChunkKind>(word & 0xFF), static_cast<uint8_t>(word >> 8),
            static_cast<uint32_t>(word >> 32)};
  }
  uint64_t word() const {
    return static_cast<uint64_t>(kind) | uint64_t{size_class} << 8 | uint64_t{chunks} << 32;
  }
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
