#include "durable/slot.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace spw::durable {

namespace {

// Pieces of at least this size are told from others by their ends
// instead of by masks of their lines, so many of a section.
constexpr uint64_t kFreshBytesMin = 4 * kKiB;
constexpr size_t kFreshMax = 64;

// Only the owner changes these.
void add(Atomic<uint64_t>& count, uint64_t more = 1) { count.store_relaxed(count.load_relaxed() + more); }

// The bits of `bytes` bytes from byte `from` of a line on.
uint64_t mask_of(unsigned from, size_t bytes) {
  const uint64_t ones = bytes >= 64 ? ~uint64_t{0} : (uint64_t{1} << bytes) - 1;
  return ones << from;
}

}  // namespace

Slot::Slot(const RegionView& region, uint32_t number, uint64_t history, Segment first, SegmentSource& more,
           Persistence& domain, const CombinerOptions& combiner)
    : region_(region),
      number_(number),
      grain_shift_(domain.grain_shift()),
      log_(region.header(), number, first, more, domain),
      writer_(domain.open_writer()),
      combiner_(make_combiner(combiner, *this)),
      completed_(history),
      history_(history) {}

void Slot::begin() {
  SPW_CHECK(section_ == 0);
  if (history() == completed_) log_.restart();
  section_ = completed_ + 1;
}

Status Slot::before_store(uint64_t at, size_t bytes, uint64_t stamp) {
  add(stores_);
  if (section_ != 0)
    if (Status status = log_old_bytes(at, bytes, stamp); !status) return status;
  note_written(at, bytes);
  return {};
}

Status Slot::before_own_store(uint64_t at, size_t bytes, uint64_t stamp) {
  if (Status status = log_old_bytes(at, bytes, stamp); !status) return status;
  has_lines_ = true;
  own_stores_.emplace_back(at, bytes);  // written back by flush_lines(), when it has been made
  return {};
}

void Slot::is_fresh(uint64_t at, size_t bytes) {
  const uint64_t end = at + bytes;
  if (bytes >= kFreshBytesMin && fresh_.size() < kFreshMax) {
    fresh_.emplace_back(at, end);
    return;
  }
  for (uint64_t line = at >> kLineShift; line << kLineShift < end; ++line) {
    const uint64_t first = std::max(at, line << kLineShift), last = std::min(end, (line + 1) << kLineShift);
    logged_.mask(line) |= mask_of(static_cast<unsigned>(first & (kLineBytes - 1)), last - first);
  }
}

Status Slot::log_old_bytes(uint64_t at, size_t bytes, uint64_t stamp) {
  for (const auto& [first, last] : fresh_)
    if (at >= first && at + bytes <= last) return {};
  if (bytes > 2 * kLineBytes) return log_large(at, bytes, stamp);
  const uint64_t end = at + bytes;
  while (at < end) {
    const unsigned from = static_cast<unsigned>(at & (kLineBytes - 1));
    const size_t here = std::min<uint64_t>(end - at, kLineBytes - from);
    const uint64_t wanted = mask_of(from, here);
    uint64_t& mask = logged_.mask(at >> kLineShift);
    for (uint64_t missing = wanted & ~mask; missing != 0;) {
      const auto first = static_cast<unsigned>(std::countr_zero(missing));
      const auto length = static_cast<unsigned>(std::countr_one(missing >> first));
      if (Status status = append_old(round_down(at, kLineBytes) + first, length, stamp); !status)
        return status;
      missing &= ~mask_of(first, length);
    }
    mask |= wanted;
    at += here;
  }
  return {};
}

// Bytes that are in the log already are logged once more, which does no harm: the first record is restored last.
Status Slot::log_large(uint64_t at, size_t bytes, uint64_t stamp) {
  for (size_t done = 0; done < bytes;) {
    const size_t piece = std::min<size_t>(bytes - done, kPayloadMax);
    if (Status status = append_old(at + done, piece, stamp); !status) return status;
    done += piece;
  }
  is_fresh(at, bytes);
  return {};
}

Status Slot::append_old(uint64_t at, size_t bytes, uint64_t stamp) {
  add(records_);
  add(log_bytes_, record_bytes(static_cast<uint32_t>(bytes)));
  return log_.append(
      {RecordKind::kOldBytes, section_, stamp, at, region_.at(at), static_cast<uint32_t>(bytes)});
}

void Slot::note_written(uint64_t at, size_t bytes) {
  if (bytes == 0) return;
  has_lines_ = true;
  write_deferred();
  announced_first_ = at >> grain_shift_;
  announced_last_ = (at + bytes - 1) >> grain_shift_;
  for (Line line = announced_first_; line <= announced_last_; ++line) combiner_->written(line);
}

void Slot::write_deferred() {
  announced_first_ = 1;
  announced_last_ = 0;
  for (const Line line : deferred_)
    writer_->write_back(region_.at(line << grain_shift_), size_t{1} << grain_shift_);
  deferred_.clear();
}

void Slot::flush(Line line) {
  add(lines_flushed_);
  if (line >= announced_first_ && line <= announced_last_) {
    deferred_.push_back(line);
    return;
  }
  writer_->write_back(region_.at(line << grain_shift_), size_t{1} << grain_shift_);
}

Status Slot::depend_on(const Dependence& on, uint64_t stamp) {
  depends_on_.push_back(on);
  return log_.append({RecordKind::kDependsOn, section_, stamp, 0, &on, sizeof on});
}

Status Slot::flush_lines() {
  if (!has_lines_) return {};
  write_deferred();
  combiner_->end_section();
  for (const auto& [at, bytes] : own_stores_) writer_->write_back(region_.at(at), bytes);
  own_stores_.clear();
  Status status = writer_->fence();
  has_lines_ = !status;  // after a failure there is no more to be had
  return status;
}

Status Slot::complete(uint64_t stamp) {
  if (Status status = log_.append({RecordKind::kComplete, section_, stamp}); !status) return status;
  return log_.persist();
}

void Slot::close() {
  add(sections_);
  completed_ = section_;
  section_ = 0;
  depends_on_.clear();
  freed_.clear();
  allocated_.clear();
  undone_.clear();
  fresh_.clear();
  logged_.clear();
}

void Slot::write_history(uint64_t section, Persistence::Writer& writer) {
  uint64_t& word = region_.slot(number_).word;
  const uint64_t value = checked_word(section, slot_place(region_.header(), number_));
  std::atomic_ref(word).store(value, std::memory_order_relaxed);  // all 8 bytes at once
  writer.write_back(&word, sizeof word);
}

void Slot::restore() {
  std::vector<const Record*> records;
  LogReader reader(region_.header(), region_.mapped, region_.header().capacity_bytes, number_);
  while (const Record* record = reader.next())
    if (record->section == section_ && record->kind == RecordKind::kOldBytes) records.push_back(record);
  for (size_t i = records.size(); i-- > 0;) {
    std::memcpy(region_.at(records[i]->address), records[i] + 1, records[i]->bytes);
    note_written(records[i]->address, records[i]->bytes);
  }
  // What it allocated is free again when it is history, and what it freed is not.
  undone_.insert(undone_.end(), allocated_.begin(), allocated_.end());
  allocated_.clear();
  freed_.clear();
}

std::vector<uint64_t> Slot::take_freed() {
  std::vector<uint64_t> all = std::move(freed_);
  all.insert(all.end(), undone_.begin(), undone_.end());
  freed_.clear();
  undone_.clear();
  return all;
}

Counts Slot::counts() const {
  Counts counts;
  counts.stores = stores_.load_relaxed();
  counts.lines_flushed = lines_flushed_.load_relaxed();
  counts.sections = sections_.load_relaxed();
  counts.records = records_.load_relaxed();
  counts.log_bytes = log_bytes_.load_relaxed();
  return counts;
}

}  // namespace spw::durable
