#include "telemetry/areas.h"

#include <algorithm>
#include <mutex>

namespace spw::telemetry {

namespace {

struct Noted {
  std::mutex mutex;
  Atomic<AreaTable*> table{nullptr};
};
Noted& noted() {
  static Noted* const instance = new Noted;
  return *instance;
}

constinit thread_local const void* t_site = nullptr;

// Nothing where the slot is free, or changes meanwhile.
std::optional<Area> read(const AreaSlot& slot) {
  Area area{slot.begin.load_acquire(), slot.bytes.load_relaxed(), slot.site.load_relaxed(), {}};
  for (const Atomic<char>& letter : slot.name) {
    const char c = letter.load_relaxed();
    if (c == '\0') break;
    area.name += c;
  }
  if (area.begin == 0 || slot.begin.load_acquire() != area.begin) return std::nullopt;
  return area;
}

}  // namespace

AllocationSite::AllocationSite(const void* caller) : is_outermost_(t_site == nullptr) {
  if (is_outermost_) t_site = caller;
}
AllocationSite::~AllocationSite() {
  if (is_outermost_) t_site = nullptr;
}

// Also in a forked child, where whoever held the lock may be gone: so the lock is not taken.
void place_areas(AreaTable* table) { noted().table.store_release(table); }

void note_area(uint64_t begin, uint64_t bytes, const std::string& file_name) {
  AreaTable* const table = noted().table.load_acquire();
  if (!table || bytes < kAreaBytesMin) return;
  std::lock_guard lock(noted().mutex);
  const auto free = std::find_if(table->begin(), table->end(),
                                 [](const AreaSlot& slot) { return slot.begin.load_relaxed() == 0; });
  if (free == table->end()) return;
  free->bytes.store_relaxed(bytes);
  free->site.store_relaxed(reinterpret_cast<uintptr_t>(t_site));
  for (size_t i = 0; i < AreaSlot::kNameBytes; ++i)
    free->name[i].store_relaxed(i < file_name.size() && i + 1 < AreaSlot::kNameBytes ? file_name[i] : '\0');
  free->begin.store_release(begin);
}

void forget_areas(uint64_t begin, uint64_t bytes) {
  AreaTable* const table = noted().table.load_acquire();
  if (!table || bytes < kAreaBytesMin) return;
  std::lock_guard lock(noted().mutex);
  for (AreaSlot& slot : *table) {
    const uint64_t there = slot.begin.load_relaxed();
    if (there != 0 && there - begin < bytes) slot.begin.store_release(0);
  }
}

std::vector<Area> areas_in(const AreaTable& table) {
  std::vector<Area> areas;
  for (const AreaSlot& slot : table)
    if (auto area = read(slot)) areas.push_back(std::move(*area));
  return areas;
}

std::optional<Area> area_at(uint64_t byte) {
  const AreaTable* const table = noted().table.load_acquire();
  if (!table) return std::nullopt;
  for (const AreaSlot& slot : *table) {
    const uint64_t begin = slot.begin.load_acquire();
    if (begin != 0 && byte - begin < slot.bytes.load_relaxed()) return read(slot);
  }
  return std::nullopt;
}

}  // namespace spw::telemetry
