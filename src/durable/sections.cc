#include "durable/sections.h"

#include <algorithm>

namespace spw::durable {

Sections::Sections(const RegionView& region, Persistence& domain, SegmentSource& segments,
                   FreedObjects& freed, const CombinerOptions& combiner)
    : region_(region),
      domain_(domain),
      segments_(segments),
      freed_(freed),
      combiner_(combiner),
      writer_(domain.open_writer()),
      taken_(region.header().slots),
      slots_(std::make_unique<Atomic<Slot*>[]>(region.header().slots)),
      slot_count_(region.header().slots) {
  domain_.set_logs(this);
}

Sections::~Sections() { domain_.set_logs(nullptr); }

Result<Slot*> Sections::take_slot() {
  std::lock_guard lock(slots_mutex_);
  if (failed_.load_relaxed() != 0) return failure_;
  const auto free = std::find(taken_.begin(), taken_.end(), false);
  if (free == taken_.end())
    return Status::sentence(
        EUSERS, "all " + std::to_string(slot_count_) +
                    " slots of the persistent region are taken by threads; create it with more slots");
  *free = true;
  const auto number = static_cast<uint32_t>(free - taken_.begin());
  if (Slot* slot = slots_[number].load_acquire()) return slot;
  const Header& header = region_.header();
  const Segment first{region_.mapped + header.logs_offset + number * header.segment_bytes,
                      header.segment_bytes};
  owned_.push_back(std::make_unique<Slot>(region_, number, payload_of(region_.slot(number).word), first,
                                          segments_, domain_, combiner_));
  slots_[number].store_release(owned_.back().get());  // pairs with the acquires of who goes over the slots
  return owned_.back().get();
}

Status Sections::flush(Slot& slot) {
  if (failed_.load_relaxed() != 0) return failure();
  Status status = slot.flush_lines();
  return status ? status : fail(std::move(status));
}

Status Sections::give_back(Slot& slot) {
  Status status = flush(slot);
  std::lock_guard lock(slots_mutex_);
  taken_[slot.number()] = false;
  return status;
}

Status Sections::close() {
  for (uint32_t i = 0; i < slot_count_; ++i)
    if (const Slot* slot = slots_[i].load_acquire(); slot != nullptr && slot->is_open())
      return Status::sentence(EBUSY, "a section is open in the persistent region");
  for (uint32_t i = 0; i < slot_count_; ++i)
    if (Slot* slot = slots_[i].load_acquire())
      if (Status status = flush(*slot); !status) return status;
  return {};
}

Status Sections::failure() const {
  if (failed_.load_acquire() == 0) return {};
  std::lock_guard lock(slots_mutex_);
  return failure_;
}

Status Sections::fail(Status status) {
  std::lock_guard lock(slots_mutex_);
  if (failed_.load_relaxed() == 0)
    failure_ =
        Status(status.error(), std::string(status.context()) +
                                   " (the persistent region takes no more stores; opened again it has every "
                                   "section that ended before)");
  failed_.store_release(1);
  return failure_;
}

Status Sections::begin(Slot& slot) {
  if (failed_.load_relaxed() != 0) return failure();
  slot.begin();
  return {};
}

Status Sections::end(Slot& slot, uint64_t stamp) {
  if (failed_.load_relaxed() != 0) {
    slot.close();
    return failure();
  }
  Status status = slot.flush_lines();
  if (status) {
    std::erase_if(slot.dependences(), [this](const Dependence& on) { return is_history(on); });
    const bool waits = !slot.dependences().empty() || slot.completed() != slot.history();
    status = waits ? wait(slot, stamp) : finish(slot);
  }
  if (status) return status;
  if (slot.is_open()) slot.close();
  return fail(std::move(status));
}

Status Sections::finish(Slot& slot) {
  const uint64_t section = slot.section();
  slot.write_history(section, slot.writer());
  if (Status status = slot.writer().fence(); !status) return status;
  const std::vector<uint64_t> freed = slot.take_freed();
  slot.close();
  slot.settled(section);
  if (!freed.empty()) freed_.are_free(freed);
  return pending_count_.load_seq_cst() == 0 ? Status() : settle_pending();
}

Status Sections::wait(Slot& slot, uint64_t stamp) {
  if (Status status = slot.complete(stamp); !status) return status;
  {
    std::lock_guard lock(pending_mutex_);
    pending_.push_back({&slot, slot.section(), slot.dependences(), slot.take_freed()});
    pending_count_.fetch_add_seq_cst(1);
    slot.close();
  }
  return settle_pending();
}

bool Sections::is_history(const Dependence& on) const {
  const Slot* slot = slots_[on.slot].load_acquire();
  return slot == nullptr || on.section <= slot->history();
}

bool Sections::goes(const Dependence& on) const {
  return is_history(on) || std::any_of(pending_.begin(), pending_.end(), [&](const Pending& other) {
           return other.goes && other.slot->number() == on.slot && other.section == on.section;
         });
}

// The largest set of pending sections that depend on nothing unfinished outside of it.
void Sections::find_what_goes() {
  for (Pending& pending : pending_) pending.goes = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (Pending& pending : pending_) {
      if (!pending.goes) continue;
      const bool before = goes({pending.slot->number(), pending.section - 1});
      const bool others = std::all_of(pending.depends_on.begin(), pending.depends_on.end(),
                                      [this](const Dependence& on) { return goes(on); });
      if (before && others) continue;
      pending.goes = false;
      changed = true;
    }
  }
}

Status Sections::settle_pending() {
  std::lock_guard lock(pending_mutex_);
  find_what_goes();
  bool any = false;
  for (Pending& pending : pending_) {
    if (!pending.goes) continue;
    pending.slot->write_history(pending.section, *writer_);  // of one slot the last one stays
    any = true;
  }
  if (!any) return {};
  if (Status status = writer_->fence(); !status) return status;
  for (Pending& pending : pending_) {
    if (!pending.goes) continue;
    pending.slot->settled(pending.section);
    if (!pending.freed.empty()) freed_.are_free(pending.freed);
  }
  const size_t gone = std::erase_if(pending_, [](const Pending& pending) { return pending.goes; });
  pending_count_.fetch_sub_acq_rel(static_cast<uint32_t>(gone));
  return {};
}

Status Sections::persist() {
  for (uint32_t i = 0; i < slot_count_; ++i)
    if (Slot* slot = slots_[i].load_acquire())
      if (Status status = slot->persist_log(); !status) return status;
  return {};
}

Counts Sections::counts() const {
  Counts sum;
  for (uint32_t i = 0; i < slot_count_; ++i) {
    const Slot* slot = slots_[i].load_acquire();
    if (slot == nullptr) continue;
    const Counts counts = slot->counts();
    sum.stores += counts.stores;
    sum.lines_flushed += counts.lines_flushed;
    sum.sections += counts.sections;
    sum.records += counts.records;
    sum.log_bytes += counts.log_bytes;
  }
  return sum;
}

std::vector<uint32_t> Sections::cache_sizes() const {
  std::vector<uint32_t> sizes(slot_count_);
  for (uint32_t i = 0; i < slot_count_; ++i)
    if (const Slot* slot = slots_[i].load_acquire()) sizes[i] = slot->cache_size();
  return sizes;
}

uint32_t Sections::profiled_size() const {
  uint32_t size = 0;
  for (uint32_t i = 0; i < slot_count_; ++i)
    if (const Slot* slot = slots_[i].load_acquire()) size = std::max(size, slot->combiner().profiled_size());
  return size;
}

}  // namespace spw::durable
