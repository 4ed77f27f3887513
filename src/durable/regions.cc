#include "durable/regions.h"

#include <algorithm>

#include "platform/time.h"

namespace spw::durable {

namespace {
constexpr uint64_t kSyncLookNs = 20'000;
constexpr uint64_t kSyncWaitNsMax = 10'000'000'000;
}  // namespace

Result<unsigned> Regions::add(std::unique_ptr<PersistentRegion> region) {
  std::lock_guard lock(mutex_);
  const auto free = std::find(owned_.begin(), owned_.end(), nullptr);
  if (free == owned_.end())
    return Status::sentence(
        EMFILE, "a process has at most " + std::to_string(kRegionsMax) + " persistent regions open");
  *free = std::move(region);
  const auto number = static_cast<unsigned>(free - owned_.begin());
  regions_[number].store_release(free->get());
  count_.store_release(std::max(count_.load_relaxed(), number + 1));
  return number;
}

Status Regions::remove(Thread& thread, unsigned number) {
  std::lock_guard lock(mutex_);
  if (number >= kRegionsMax || owned_[number] == nullptr)
    return Status::sentence(EINVAL, "this persistent region is not open");
  if (thread.depth != 0) return Status::sentence(EBUSY, "this thread is in a section");
  if (Status status = owned_[number]->close(); !status) return status;
  locks_.clear();
  regions_[number].store_release(nullptr);
  owned_[number].reset();
  return {};
}

unsigned Regions::find(uintptr_t address) const {
  const unsigned count = count_.load_acquire();
  for (unsigned i = 0; i < count; ++i)
    if (const PersistentRegion* region = this->region(i); region != nullptr && region->contains(address))
      return i;
  return kRegionsMax;
}

Regions::Range Regions::range() const {
  Range range;
  uintptr_t end = 0;
  for (unsigned i = 0; i < kRegionsMax; ++i) {
    const PersistentRegion* region = this->region(i);
    if (region == nullptr) continue;
    range.first = end == 0 ? region->base() : std::min<uintptr_t>(range.first, region->base());
    end = std::max<uintptr_t>(end, region->base() + region->capacity_bytes());
  }
  range.bytes = end - range.first;
  return range;
}

inline Slot* Regions::slot_of(const Thread& thread, unsigned number) const {
  const Thread::Part& part = thread.parts[number];
  const PersistentRegion* region = this->region(number);
  return region != nullptr && part.region == region->serial() ? part.slot : nullptr;
}

Result<Slot*> Regions::join(Thread& thread, unsigned number) {
  PersistentRegion& region = *this->region(number);
  Slot* slot = slot_of(thread, number);
  if (slot == nullptr) {
    auto taken = region.sections().take_slot();
    if (!taken) return taken.status();
    slot = *taken;
    thread.parts[number] = {slot, region.serial()};
  }
  if (thread.depth != 0 && !slot->is_open())
    if (Status status = region.sections().begin(*slot); !status) return status;
  return slot;
}

Status Regions::end_sections(Thread& thread) {
  Status first;
  for (unsigned i = 0; i < kRegionsMax; ++i) {
    Slot* slot = slot_of(thread, i);
    if (slot == nullptr || !slot->is_open()) continue;
    Status status = region(i)->sections().end(*slot, thread.stamp);
    if (!status && first) first = std::move(status);
  }
  return first;
}

Status Regions::end(Thread& thread) {
  if (thread.depth == 0) return Status::sentence(EPERM, "no section was begun");
  Status status = thread.depth == 1 ? end_sections(thread) : Status();
  if (--thread.depth == 0) thread.has_released = false;
  return status;
}

Status Regions::acquired(Thread& thread, const void* lock) {
  ++thread.depth;
  const HandedOn handed_on = locks_.acquired(lock);
  thread.stamp = std::max(thread.stamp, handed_on.stamp) + 1;
  for (const HandedOn::Section& section : handed_on.sections) {
    PersistentRegion* region = this->region(section.region);
    if (region == nullptr || region->sections().is_history(section.on)) continue;
    auto slot = join(thread, section.region);
    if (!slot) return slot.status();
    if ((*slot)->number() == section.on.slot) continue;  // its own, or one before it in the same log
    // What this section logs from now on may be what the other one has stored. It must not be durable before the records that restore what
    // stood there first: a recovery would bring back what the other one stored.
    if (Status status = region->sections().persist(); !status) return status;
    if (Status status = (*slot)->depend_on(section.on, thread.stamp); !status) return status;
  }
  return {};
}

HandedOn Regions::unfinished(const Thread& thread) const {
  HandedOn handed_on;
  for (unsigned i = 0; i < kRegionsMax; ++i) {
    const Slot* slot = slot_of(thread, i);
    if (slot == nullptr) continue;
    if (slot->is_open())
      handed_on.sections.push_back({i, {slot->number(), slot->section()}});
    else if (slot->completed() != slot->history())
      handed_on.sections.push_back({i, {slot->number(), slot->completed()}});
  }
  return handed_on;
}

Status Regions::releasing(Thread& thread, const void* lock) {
  if (thread.depth == 0) return {};  // taken before there was a region
  Status status = thread.depth == 1 ? end_sections(thread) : Status();
  HandedOn handed_on = unfinished(thread);
  handed_on.stamp = thread.stamp++;
  if (handed_on.sections.empty())
    locks_.released(lock);
  else
    locks_.released(lock, std::move(handed_on));
  if (thread.depth > 1) thread.has_released = true;
  if (--thread.depth == 0) thread.has_released = false;
  return status;
}

Status Regions::restore(Thread& thread) {
  if (thread.depth == 0) return Status::sentence(EPERM, "no section is open");
  if (thread.has_released)
    return Status::sentence(EBUSY, "the section has released a lock: others may have seen what it stored");
  for (unsigned i = 0; i < kRegionsMax; ++i)
    if (Slot* slot = slot_of(thread, i); slot != nullptr && slot->is_open()) slot->restore();
  return {};
}

Status Regions::before_store(Thread& thread, uintptr_t address, size_t bytes) {
  const PersistentRegion* last = region(thread.last);
  if (last != nullptr && last->contains(address) && last->contains(address + bytes - 1)) [[likely]] {
    const Thread::Part& part = thread.parts[thread.last];
    if (part.region == last->serial() && part.slot->is_open()) [[likely]]
      return part.slot->before_store(address, bytes, thread.stamp);
  }
  const unsigned number = find(address);
  if (number == kRegionsMax || !region(number)->contains(address + bytes - 1))
    return Status::sentence(EFAULT, "not all of these bytes are in one persistent region");
  auto slot = join(thread, number);
  if (!slot) return slot.status();
  thread.last = number;
  return (*slot)->before_store(address, bytes, thread.stamp);
}

// Within the thread's section, or in one of its own.
template <class Work>
Status Regions::in_section(Thread& thread, unsigned number, Work work) {
  if (number >= kRegionsMax || region(number) == nullptr)
    return Status::sentence(EINVAL, "this persistent region is not open");
  begin(thread);
  auto slot = join(thread, number);
  Status status = slot ? work(**slot) : slot.status();
  Status ended = end(thread);
  return status ? ended : status;
}

Result<uint64_t> Regions::allocate(Thread& thread, unsigned number, uint64_t bytes) {
  uint64_t address = 0;
  Status status = in_section(thread, number, [&](Slot& slot) {
    auto object = region(number)->objects().allocate(slot, bytes, thread.stamp);
    if (object) address = *object;
    return object.status();
  });
  if (!status) return status;
  return address;
}

Status Regions::free(Thread& thread, uintptr_t address) {
  const unsigned number = find(address);
  if (number == kRegionsMax) return Status::sentence(EINVAL, "this address is in no persistent region");
  return in_section(thread, number,
                    [&](Slot& slot) { return region(number)->objects().free(slot, address, thread.stamp); });
}

Status Regions::set_root(Thread& thread, unsigned number, std::string_view name, uint64_t address) {
  return in_section(thread, number, [&](Slot& slot) {
    return region(number)->roots().set(slot, name, address, thread.stamp);
  });
}

Status Regions::sync(Thread& thread) {
  if (thread.depth != 0) return Status::sentence(EBUSY, "a section is open; its end makes it durable");
  const uint64_t deadline_ns = platform::deadline_after(platform::monotonic_ns(), kSyncWaitNsMax);
  for (unsigned i = 0; i < kRegionsMax; ++i) {
    Slot* slot = slot_of(thread, i);
    if (slot == nullptr) continue;
    if (Status status = slot->flush_lines(); !status) return status;
    // Complete, and waiting for what others have not ended yet.
    while (slot->completed() != slot->history()) {
      if (Status status = region(i)->sections().failure(); !status) return status;
      if (platform::monotonic_ns() > deadline_ns)
        return Status::sentence(ETIMEDOUT,
                                "a section that this thread's have seen something of does not end");
      platform::sleep_ns(kSyncLookNs);
    }
  }
  return {};
}

Status Regions::ended(Thread& thread) {
  if (thread.depth != 0) return Status::sentence(EBUSY, "the thread ends in a section, which will be undone");
  Status first;
  for (unsigned i = 0; i < kRegionsMax; ++i) {
    Slot* slot = slot_of(thread, i);
    if (slot == nullptr) continue;
    Status status = region(i)->sections().give_back(*slot);
    if (!status && first) first = std::move(status);
    thread.parts[i] = {};
  }
  return first;
}

}  // namespace spw::durable
