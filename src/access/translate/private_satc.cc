#include "access/translate/private_satc.h"

#include "base/units.h"

namespace spw::access {

namespace {
constexpr size_t kLineBytes = 64;
size_t keys_bytes(const SatcShape& shape) { return round_up(shape.entries() * sizeof(uint64_t), kLineBytes); }
size_t entries_bytes(const SatcShape& shape) {
  return round_up(shape.entries() * sizeof(SatcEntry), kLineBytes);
}
}  // namespace

size_t PrivateSatc::bytes_for(const SatcShape& shape) {
  return keys_bytes(shape) + entries_bytes(shape) + round_up(size_t{shape.groups} * shape.sets, kLineBytes);
}

PrivateSatc::PrivateSatc(const SatcShape& shape, const cache::PartitionMap& partitions, void* memory)
    : shape_(shape), partitions_(partitions) {
  SPW_CHECK(shape.entries() > 0 && shape.ways <= UINT8_MAX);
  auto* bytes = static_cast<std::byte*>(memory);
  keys_ = reinterpret_cast<uint64_t*>(bytes);
  entries_ = reinterpret_cast<SatcEntry*>(bytes + keys_bytes(shape));
  hands_ = reinterpret_cast<uint8_t*>(bytes + keys_bytes(shape) + entries_bytes(shape));
}

}  // namespace spw::access
