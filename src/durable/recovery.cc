#include "durable/recovery.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "durable/undo_log.h"

namespace spw::durable {

namespace {

Status damaged(const std::string& what) {
  return Status::sentence(EILSEQ, "the persistent region is damaged: " + what +
                                      "; nothing was changed. Restore the file from a copy");
}

Status read_record(const RegionView& region, uint32_t slot, const Record& record, SlotHistory* history) {
  if (record.section <= history->history) return {};
  if (history->sections.empty() || history->sections.back().number != record.section) {
    history->sections.push_back({});
    history->sections.back().number = record.section;
  }
  SlotHistory::Section& section = history->sections.back();
  switch (record.kind) {
    case RecordKind::kOldBytes:
      if (!region.may_change(record.address, record.bytes))
        return damaged("the log of slot " + std::to_string(slot) + " names an address outside of the heap");
      section.old_bytes.push_back(&record);
      break;
    case RecordKind::kDependsOn: {
      Dependence on;
      if (record.bytes != sizeof on)
        return damaged("a dependence in the log of slot " + std::to_string(slot));
      std::memcpy(&on, &record + 1, sizeof on);
      section.depends_on.push_back(on);
      break;
    }
    case RecordKind::kComplete:
      section.complete = true;
      break;
    case RecordKind::kJump:
      break;
    default:
      return damaged("a record of an unknown kind in the log of slot " + std::to_string(slot));
  }
  return {};
}

// Whether what the section depends on counts, by what is known so far.
bool counts(const SlotHistory::Section& section, const std::vector<SlotHistory>& histories) {
  if (!section.complete) return false;
  return std::all_of(section.depends_on.begin(), section.depends_on.end(), [&](const Dependence& on) {
    if (on.slot >= histories.size()) return false;
    const SlotHistory& other = histories[on.slot];
    if (on.section <= other.history) return true;
    const auto end = other.sections.begin() + static_cast<ptrdiff_t>(other.kept);
    const auto found = std::lower_bound(
        other.sections.begin(), end, on.section,
        [](const SlotHistory::Section& each, uint64_t number) { return each.number < number; });
    return found != end && found->number == on.section;
  });
}

// The largest set of sections that depend on nothing outside of it:
// begun with all, those that cannot be in it are taken out.
void decide(std::vector<SlotHistory>& histories) {
  for (SlotHistory& history : histories) history.kept = history.sections.size();
  for (bool changed = true; changed;) {
    changed = false;
    for (SlotHistory& history : histories)
      for (size_t i = 0; i < history.kept; ++i) {
        if (counts(history.sections[i], histories)) continue;
        history.kept = i;
        changed = true;
      }
  }
}

// The record as it was when it was read: where logs lie is not believed, so one step may put bytes over the record of
// the next.
struct Undo {
  uint32_t slot;
  size_t position;
  Record record;
  const std::byte* old_bytes;
};

// The last store first.
std::vector<Undo> to_undo(const std::vector<SlotHistory>& histories) {
  std::vector<Undo> undo;
  for (uint32_t slot = 0; slot < histories.size(); ++slot) {
    size_t position = 0;
    for (size_t i = histories[slot].kept; i < histories[slot].sections.size(); ++i)
      for (const Record* record : histories[slot].sections[i].old_bytes)
        undo.push_back({slot, position++, *record, reinterpret_cast<const std::byte*>(record + 1)});
  }
  std::sort(undo.begin(), undo.end(), [](const Undo& a, const Undo& b) {
    if (a.record.stamp != b.record.stamp) return a.record.stamp > b.record.stamp;
    return a.slot != b.slot ? a.slot > b.slot : a.position > b.position;
  });
  return undo;
}

}  // namespace

Result<std::vector<SlotHistory>> read_histories(const RegionView& region, bool stores_leak) {
  const Header& header = region.header();
  std::vector<SlotHistory> histories(header.slots);
  for (uint32_t slot = 0; slot < header.slots; ++slot) {
    const uint64_t word = region.slot(slot).word;
    if (!is_slot_word(word)) return damaged("the word of slot " + std::to_string(slot));
    SlotHistory& history = histories[slot];
    history.history = word & kSectionMask;
    LogReader reader(header, region.mapped, region.bytes, slot);
    while (const Record* record = reader.next())
      if (Status status = read_record(region, slot, *record, &history); !status) return status;
    if (stores_leak && reader.goes_on_behind(history.history))
      return damaged("a record of slot " + std::to_string(slot) + "'s log at offset " +
                     std::to_string(reader.offset()));
  }
  decide(histories);
  return histories;
}

Result<Recovery> recover(const RegionView& region, Persistence& domain) {
  auto histories = read_histories(region, domain.stores_leak());
  if (!histories) return histories.status();
  Recovery result;
  const auto writer = domain.open_writer();
  const std::vector<Undo> undo = to_undo(*histories);
  for (const Undo& step : undo) {
    std::byte* const to = region.at(step.record.address);
    std::memmove(to, step.old_bytes, step.record.bytes);
    writer->write_back(to, step.record.bytes);
  }
  if (Status status = writer->fence(); !status) return status;
  result.records_undone = undo.size();
  for (const SlotHistory& history : *histories) {
    result.sections_kept += history.kept;
    result.sections_undone += history.sections.size() - history.kept;
  }
  // Also when there is nothing to undo: a log may have records behind one that never became durable.
  std::atomic_ref(region.header().epoch).fetch_add(1, std::memory_order_relaxed);
  writer->write_back(&region.header().epoch, sizeof(uint64_t));
  if (Status status = writer->fence(); !status) return status;
  return result;
}

}  // namespace spw::durable
