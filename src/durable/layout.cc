#define XXH_INLINE_ALL
#include "durable/layout.h"

#include <xxhash.h>

namespace spw::durable {

StateBytes::StateBytes(const Header& header, uint64_t chunk) {
  const uint64_t of[] = {header.identity, chunk};
  mix_ = XXH3_64bits(of, sizeof of);
}

uint64_t checksum_of(const Header& header) { return XXH3_64bits(&header, offsetof(Header, checksum)); }

uint64_t checksum_of(const Root& root, const Header& header, uint32_t number) {
  return XXH3_64bits_withSeed(&root, offsetof(Root, checksum), header.identity + number);
}

uint64_t log_seed(const Header& header, uint32_t slot) {
  const uint64_t of[] = {header.identity, header.epoch, slot};
  return XXH3_64bits(of, sizeof of);
}

uint64_t checksum_of(const Record& record, uint64_t seed) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&record);
  return XXH3_64bits_withSeed(bytes + sizeof record.checksum,
                              record_bytes(record.bytes) - sizeof record.checksum, seed);
}

Header make_header(const LayoutOptions& options, uint64_t identity) {
  Header header{};
  header.magic = kMagic;
  header.version = kVersion;
  header.slots = options.slots;
  header.identity = identity;
  header.base = options.base;
  header.capacity_bytes = options.capacity_bytes;
  header.segment_bytes = options.segment_bytes;
  header.roots_offset = kMmuPageBytes;
  header.slots_offset = round_up(header.roots_offset + kRootsMax * sizeof(Root), kMmuPageBytes);
  header.logs_offset = round_up(header.slots_offset + options.slots * sizeof(SlotWord), kMmuPageBytes);
  header.chunks_offset = round_up(header.logs_offset + options.slots * options.segment_bytes, kMmuPageBytes);
  header.heap_offset =
      round_up(header.chunks_offset + options.capacity_bytes / kChunkBytes * sizeof(uint64_t), kChunkBytes);
  header.checksum = checksum_of(header);
  header.epoch = checked_word(0, epoch_place(header));
  return header;
}

}  // namespace spw::durable
