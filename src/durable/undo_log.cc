#include "durable/undo_log.h"

#include <cstring>

#include "base/check.h"

namespace spw::durable {

namespace {
constexpr uint64_t kJumpBytes = record_bytes(0);
}

UndoLog::UndoLog(const Header& header, uint32_t slot, Segment first, SegmentSource& more, Persistence& domain)
    : seed_(log_seed(header, slot)),
      more_(more),
      leaks_(domain.stores_leak()),
      writer_(domain.open_log_writer()),
      segments_{first} {}

Status UndoLog::append(const Entry& entry) {
  SPW_CHECK(entry.bytes <= kPayloadMax);
  const uint64_t needed = record_bytes(entry.bytes);
  // There is always room left for the record that leads on, and until a section is complete for the one that says so:
  // to end must not fail for want of room.
  const uint64_t reserved = entry.kind == RecordKind::kComplete ? kJumpBytes : 2 * kJumpBytes;
  if (end_at_.offset + needed + reserved > segments_[end_at_.segment].bytes)
    if (Status status = go_on(entry, needed); !status) return status;
  const Position at = end_at_;
  put(entry, at);
  end_at_.offset += static_cast<uint32_t>(needed);
  end_.store_release(packed(end_at_));  // pairs with the acquire in persist()
  return settle(segments_[at.segment].data + at.offset, needed);
}

// The next segment of the chain, one from before or a new one.
Status UndoLog::go_on(const Entry& entry, uint64_t needed_bytes) {
  if (end_at_.segment + 1 == segments_.size() ||
      segments_[end_at_.segment + 1].bytes < needed_bytes + 2 * kJumpBytes) {
    auto segment = more_.take_segment(needed_bytes + 2 * kJumpBytes);
    if (!segment) return segment.status();
    std::lock_guard lock(mutex_);
    // Longer ones of before stay behind it.
    segments_.insert(segments_.begin() + end_at_.segment + 1, *segment);
  }
  Entry jump{RecordKind::kJump, entry.section, entry.stamp};
  jump.address = reinterpret_cast<uintptr_t>(segments_[end_at_.segment + 1].data);
  put(jump, end_at_);
  const std::byte* const record = segments_[end_at_.segment].data + end_at_.offset;
  end_at_ = {end_at_.segment + 1, 0};
  end_.store_release(packed(end_at_));
  return settle(record, kJumpBytes);
}

void UndoLog::put(const Entry& entry, Position at) {
  std::byte* const to = segments_[at.segment].data + at.offset;
  auto* record = reinterpret_cast<Record*>(to);
  record->section = entry.section;
  record->stamp = entry.stamp;
  record->address = entry.address;
  record->bytes = entry.bytes;
  record->kind = entry.kind;
  if (entry.bytes % 8 != 0) std::memset(to + sizeof(Record) + round_down(entry.bytes, 8), 0, 8);
  if (entry.bytes != 0) std::memcpy(to + sizeof(Record), entry.payload, entry.bytes);
  record->checksum = checksum_of(*record, seed_);
}

Status UndoLog::settle(const std::byte* record, uint64_t bytes) {
  if (!leaks_) return {};
  writer_->write_back(record, bytes);
  return writer_->fence();
}

Status UndoLog::persist() {
  if (leaks_) return {};
  std::lock_guard lock(mutex_);
  const Position end = unpacked(end_.load_acquire());
  if (packed(end) == packed(persisted_)) return {};
  // What the owner appends meanwhile may be written in part: it is no
  // record then, and nothing it covers is written yet.
  for (uint32_t s = persisted_.segment; s <= end.segment; ++s) {
    const uint64_t from = s == persisted_.segment ? persisted_.offset : 0;
    const uint64_t to = s == end.segment ? end.offset : segments_[s].bytes;
    if (to > from) writer_->write_back(segments_[s].data + from, to - from);
  }
  if (Status status = writer_->fence(); !status) return status;
  persisted_ = end;
  return {};
}

void UndoLog::restart() {
  std::lock_guard lock(mutex_);
  end_at_ = persisted_ = {0, 0};
  end_.store_release(0);
}

LogReader::LogReader(const Header& header, const std::byte* mapped, uint64_t mapped_bytes, uint32_t slot)
    : header_(header),
      mapped_(mapped),
      mapped_bytes_(mapped_bytes),
      seed_(log_seed(header, slot)),
      offset_(header.logs_offset + slot * header.segment_bytes),
      end_(offset_ + header.segment_bytes) {}

const Record* LogReader::at(uint64_t offset) const {
  if (offset + sizeof(Record) > end_) return nullptr;
  const auto* record = reinterpret_cast<const Record*>(mapped_ + offset);
  if (record->bytes > kPayloadMax || offset + record_bytes(record->bytes) > end_) return nullptr;
  return record->checksum == checksum_of(*record, seed_) ? record : nullptr;
}

const Record* LogReader::next() {
  for (;;) {
    const Record* record = at(offset_);
    if (record == nullptr || record->section < last_section_) return nullptr;
    last_section_ = record->section;
    if (record->kind != RecordKind::kJump) {
      offset_ += record_bytes(record->bytes);
      return record;
    }
    if (!follow(*record)) return nullptr;
  }
}

bool LogReader::follow(const Record& jump) {
  const uint64_t offset = jump.address - header_.base;
  if (offset < header_.heap_offset || offset >= mapped_bytes_ ||
      (offset - header_.heap_offset) % kChunkBytes != 0 || visited_.contains(offset))
    return false;
  const auto* chunks = reinterpret_cast<const uint64_t*>(mapped_ + header_.chunks_offset);
  const uint64_t chunk = (offset - header_.heap_offset) / kChunkBytes;
  const ChunkWord word = ChunkWord::of(chunks[chunk]);
  if (!is_checked_word(chunks[chunk], chunk_place(header_, chunk)) || word.kind != ChunkKind::kLog ||
      offset + word.chunks * kChunkBytes > mapped_bytes_)
    return false;
  visited_.insert(offset);
  offset_ = offset;
  end_ = offset + word.chunks * kChunkBytes;
  return true;
}

bool LogReader::goes_on_behind(uint64_t history) const {
  for (uint64_t offset = offset_ + 8; offset + sizeof(Record) <= end_; offset += 8) {
    const Record* record = at(offset);
    if (record != nullptr && record->section > history) return true;
  }
  return false;
}

}  // namespace spw::durable
