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
  Place& place = places_[number];
  place.base.store_relaxed((*free)->base());
  place.bytes.store_relaxed((*free)->capacity_bytes());
  regions_[number].store_relaxed(free->get());
  place.serial.store_release((*free)->serial());
  count_.store_release(std::max(count_.load_relaxed(), number + 1));
  return number;
}

Status Regions::remove(Thread& thread, unsigned number) {
  std::lock_guard lock(mutex_);
  if (number >= kRegionsMax || owned_[number] == nullptr)
    return Status::sentence(EINVAL, "this persistent region is not open");
  if (thread.depth != 0) return Status::sentence(EBUSY, "this thread is in a section");
  if (Status status = owned_[number]->close(); !status) return status;
  locks_.forget(number);
  places_[number].serial.store_release(0);
  regions_[number].store_release(nullptr);
  owned_[number].reset();
  return {};
}

unsigned Regions::find(uintptr_t address) const {
  const unsigned count = count_.load_acquire();
  for (unsigned i = 0; i < count; ++i) {
    const Place& place = places_[i];
    if (place.serial.load_acquire() != 0 && address - place.base.load_relaxed() < place.bytes.load_relaxed())
      return i;
  }
  return kRegionsMax;
}

uintptr_t Regions::end_address() const {
  uintptr_t end = 0;
  for (const auto& region : owned_)
    if (region != nullptr) end = std::max<uintptr_t>(end, region->base() + region->capacity_bytes());
  return end;
}

bool Regions::is_history(const HandedOn::Section& section) const {
  PersistentRegion* region = this->region(section.region);
  return region == nullptr || region->sections().is_history(section.on);
}

inline Slot* Regions::slot_of(const Thread& thread, unsigned number) const {
  const Thread::Part& part = thread.parts[number];
  return part.slot != nullptr && part.region == places_[number].serial.load_acquire() ? part.slot : nullptr;
}

Result<Slot*> Regions::join(Thread& thread, unsigned number) {
  PersistentRegion& region = *this->region(number);
  Slot* slot = slot_of(thread, number);
  if (slot == nullptr) {
    auto taken = region.sections().take_slot();
    if (!taken) return taken.status();
    slot = *taken;
    thread.parts[number] = {slot, region.serial()};
    // What it logs comes after what the slot's last thread has logged.
    thread.stamp = std::max(thread.stamp, slot->left_at() + 1);
  }
  if (thread.depth != 0 && !slot->is_open())
    if (Status status = region.sections().begin(*slot); !status) return status;
  return slot;
}

Status Regions::end_sections(Thread& thread) {
  Status first;
  for (unsigned i = 0; i < kRegionsMax; ++i) {
    Slot* slot = slot_of(thread, i);
    if (slot == nullptr) continue;
    Sections& sections = region(i)->sections();
    // Also what it stored there outside of any section becomes durable now.
    Status status = slot->is_open() ? sections.end(*slot, thread.stamp) : sections.flush(*slot);
    if (!status && first) first = std::move(status);
  }
  return first;
}

Status Regions::end_one(Thread& thread) {
  Status status = thread.depth == 1 ? end_sections(thread) : Status();
  if (--thread.depth == 0) thread.has_released = false;
  return status;
}

Status Regions::end(Thread& thread) {
  if (thread.begins == 0) return Status::sentence(EPERM, "no section was begun");
  --thread.begins;
  return end_one(thread);
}

Status Regions::acquired(Thread& thread, const void* lock) {
  ++thread.depth;
  thread.locks.push_back(lock);
  const HandedOn handed_on = locks_.acquired(lock);
  thread.stamp = std::max(thread.stamp, handed_on.stamp) + 1;
  Status first;
  for (const HandedOn::Section& section : handed_on.sections) {
    if (is_history(section)) continue;
    auto slot = join(thread, section.region);
    if (!slot) {
      first = slot.status();
      continue;
    }
    if ((*slot)->number() == section.on.slot) continue;  // its own, or one before it in the same log
    // What this section logs from now on may be what the other one has stored. It must not be durable before the
    // records that restore what stood there first: a recovery would bring back what the other one stored.
    Status status = region(section.region)->sections().persist();
    if (status) status = (*slot)->depend_on(section.on, thread.stamp);
    if (!status) first = std::move(status);
  }
  return first;
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

void Regions::hand_on(const Thread& thread, const void* lock) {
  HandedOn handed_on = unfinished(thread);
  handed_on.stamp = thread.stamp;
  locks_.released(lock, handed_on, [this](const HandedOn::Section& old) { return is_history(old); });
}

Status Regions::releasing(Thread& thread, const void* lock) {
  const auto held = std::find(thread.locks.rbegin(), thread.locks.rend(), lock);
  if (held == thread.locks.rend()) return {};
  thread.locks.erase(std::next(held).base());
  const bool is_last = thread.depth == 1;
  Status status = is_last ? end_sections(thread) : Status();
  hand_on(thread, lock);
  ++thread.stamp;
  thread.has_released = !is_last;
  --thread.depth;
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
  if (Slot* slot = slot_of(thread, thread.last); slot != nullptr && slot->is_open()) [[likely]]
    if (region(thread.last)->is_heap(address, bytes)) [[likely]]
      return slot->before_store(address, bytes, thread.stamp);
  const unsigned number = find(address);
  if (number == kRegionsMax || !region(number)->is_heap(address, bytes))
    return Status::sentence(EFAULT, "not all of these bytes are in the heap of one persistent region");
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
    if (Status status = region(i)->sections().flush(*slot); !status) return status;
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

void Regions::forked() {
  for (const auto& region : owned_)
    if (region != nullptr) region->let_go_of_file();
}

Status Regions::ended(Thread& thread) {
  std::lock_guard lock(mutex_);  // no region is closed meanwhile
  Status first;
  // Whoever gets such a lock all the same (a robust mutex) has seen what will be undone.
  for (const void* held : thread.locks) hand_on(thread, held);
  for (unsigned i = 0; i < kRegionsMax; ++i) {
    Slot* slot = slot_of(thread, i);
    if (slot == nullptr) continue;
    slot->leave_at(thread.stamp);
    Status status =
        slot->is_open()
            ? Status::sentence(EBUSY, "a thread ended inside of a durable section, which will be undone")
            : region(i)->sections().give_back(*slot);
    if (!status && first) first = std::move(status);
    thread.parts[i] = {};
  }
  return first;
}

}  // namespace spw::durable
