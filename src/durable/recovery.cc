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

// A region that was never recovered: what its first recovery writes may be zeros still.
bool is_new(const RegionView& region) { return payload_of(region.header().epoch) == 0; }

bool is_zero(const Root& root) {
  static constexpr Root kZero{};
  return std::memcmp(&root, &kZero, sizeof root) == 0;
}

Status check_roots(const RegionView& region, const std::vector<Undo>& undo) {
  const std::vector<Root> roots = roots_after(region, undo);
  for (uint32_t i = 0; i < kRootsMax; ++i)
    if (const char* fault = fault_of(roots[i], region, i))
      return damaged("root " + std::to_string(i) + " " + fault);
  return {};
}

// Of a new region: no root, and no section that has been. Each by one store, so a crash leaves nothing to mend.
void write_first_words(const RegionView& region, Persistence::Writer& writer) {
  const Header& header = region.header();
  const auto put = [&writer](uint64_t& word, uint64_t value) {
    std::atomic_ref(word).store(value, std::memory_order_relaxed);
    writer.write_back(&word, sizeof word);
  };
  for (uint32_t i = 0; i < kRootsMax; ++i)
    if (Root& root = region.roots()[i]; is_zero(root)) put(root.checksum, checksum_of(Root{}, header, i));
  for (uint32_t i = 0; i < header.slots; ++i)
    if (uint64_t& word = region.slot(i).word; word == 0) put(word, checked_word(0, slot_place(header, i)));
}

}  // namespace

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

std::vector<Root> roots_after(const RegionView& region, const std::vector<Undo>& undo) {
  std::vector<Root> roots(region.roots(), region.roots() + kRootsMax);
  const uint64_t begin = region.header().base + region.header().roots_offset;
  for (const Undo& step : undo) {
    const uint64_t offset = step.record.address - begin;
    if (offset >= kRootsMax * sizeof(Root)) continue;
    // What sections may store to ends with the roots, or lies behind them.
    std::memcpy(reinterpret_cast<std::byte*>(roots.data()) + offset, step.old_bytes, step.record.bytes);
  }
  return roots;
}

const char* fault_of(const Root& root, const RegionView& region, uint32_t number) {
  if (is_zero(root) && is_new(region)) return nullptr;
  if (root.checksum != checksum_of(root, region.header(), number)) return "is damaged";
  const char* const end = root.name + sizeof root.name;
  return std::find(root.name, end, '\0') == end ? "has a name without an end" : nullptr;
}

Result<std::vector<SlotHistory>> read_histories(const RegionView& region, bool stores_leak) {
  const Header& header = region.header();
  if (!is_checked_word(header.epoch, epoch_place(header))) return damaged("the epoch in its header");
  std::vector<SlotHistory> histories(header.slots);
  for (uint32_t slot = 0; slot < header.slots; ++slot) {
    const uint64_t word = region.slot(slot).word;
    if (!is_checked_word(word, slot_place(header, slot)) && !(word == 0 && is_new(region)))
      return damaged("the word of slot " + std::to_string(slot));
    SlotHistory& history = histories[slot];
    history.history = payload_of(word);
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
  const std::vector<Undo> undo = to_undo(*histories);
  if (Status status = check_roots(region, undo); !status) return status;
  Recovery result;
  const auto writer = domain.open_writer();
  for (const Undo& step : undo) {
    std::byte* const to = region.at(step.record.address);
    std::memmove(to, step.old_bytes, step.record.bytes);
    writer->write_back(to, step.record.bytes);
  }
  if (is_new(region)) write_first_words(region, *writer);
  if (Status status = writer->fence(); !status) return status;
  result.records_undone = undo.size();
  for (const SlotHistory& history : *histories) {
    result.sections_kept += history.kept;
    result.sections_undone += history.sections.size() - history.kept;
  }
  // Also when there is nothing to undo: a log may have records behind one that never became durable.
  Header& header = region.header();
  const uint64_t epoch = checked_word(payload_of(header.epoch) + 1, epoch_place(header));
  std::atomic_ref(header.epoch).store(epoch, std::memory_order_relaxed);
  writer->write_back(&region.header().epoch, sizeof(uint64_t));
  if (Status status = writer->fence(); !status) return status;
  return result;
}

}  // namespace spw::durable
