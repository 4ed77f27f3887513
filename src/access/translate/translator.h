// One thread's translations: the direct SATC that instrumented code reads inline, the private SATC behind it,
// and the thread's door to the shared cache (TriCache, section 3.3).
//
// Invariants
//   a direct entry with read_tag = g   =>  the block of granule g has a private entry, and delta is that frame's
//   a direct entry with write_tag = g  =>  that private entry is writable (the frame is dirty)
//   pins of this thread = private entries + ring entries + windows that outlived their entry
//                      <= shape.charge() + windows held
// Validity: a block that leaves the private SATC goes to a ring of kRingPins frames and is unpinned only when it
//   leaves that, so a raw address survives at least SPW_STABLE_TRANSLATIONS further translations (abi.h). Where more
//   leave at once than the ring takes, when the SATC grows, they stay pinned beside it for as long.
// Threads: one. A signal handler has a translator of its own (engine.h), and does not run while a miss is served
//   (InRuntime).
// Lifetime: made at the thread's first managed access, ended by the thread's end (or the process's).
// Limits: SatcShape; kDirectEntriesMax.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi/abi.h"
#include "access/managed_access.h"
#include "access/translate/ghost_list.h"
#include "access/translate/pin_budget.h"
#include "access/translate/private_satc.h"
#include "base/atomic.h"
#include "base/ids.h"
#include "cache/cache.h"
#include "platform/memory.h"
#include "telemetry/counters.h"

namespace spw::access {

inline constexpr uint64_t kDirectEntriesMax = uint64_t{1} << 20;

// For measuring what a level is worth. kDirect: no private SATC; direct entries hold the pins, as many as there may be
// in one partition. kNone: each translation pins its block anew, and what keeps it valid for a while is left.
enum class SatcLevels : uint8_t { kAll, kPrivate, kDirect, kNone };

// What all translators of an engine share.
struct TranslatorConfig {
  cache::SharedCache* cache = nullptr;
  unsigned block_shift = 12;
  cache::PartitionMap partitions;
  // Reports `status` and does not return.
  void (*fatal)(const Status& status) = nullptr;
  PinBudget* budget = nullptr;             // what a full SATC asks for more pins; nullptr: it stays as it is
  Atomic<uint64_t>* satc_bytes = nullptr;  // what all SATCs take; nullptr: not counted
  SatcLevels levels = SatcLevels::kAll;
};

class Translator {
 public:
  // `thread`: the TLS block instrumented code reads.
  Translator(const TranslatorConfig& config, cache::Client& client, const SatcShape& shape,
             __spw_thread& thread);
  ~Translator();

  // The raw address for `address`, which is managed; the block is brought in and pinned. `store`: it may be stored to.
  std::byte* translate(uintptr_t address, bool store) {
    const __spw_satc_entry& direct = direct_entry(address);
    if ((store ? direct.write_tag : direct.read_tag) == static_cast<uint32_t>(address >> SPW_GRANULE_SHIFT))
      return reinterpret_cast<std::byte*>(address + direct.delta);
    SatcEntry& entry = lookup(block_of(address), store ? cache::Access::kWrite : cache::Access::kRead);
    fill_direct(address, entry);
    return entry.data + offset_of(address);
  }
  bool crosses_block(uintptr_t address, size_t size) const {
    return offset_of(address) + size > block_bytes();
  }

  // A copy of `size` <= SPW_ACCESS_BYTES_MAX bytes at `address`, which may cross blocks; good until the next call.
  const std::byte* read_across(uintptr_t address, size_t size);
  void write_across(uintptr_t address, const std::byte* bytes, size_t size);
  // See __spw_span_v1.
  std::byte* span(uintptr_t address, size_t size, bool store);
  // As memmove, of kFewBytesMax bytes at most; either pointer may be managed or not.
  void copy_few(void* to, const void* from, size_t size);

  // A window by the validity rule alone: it is not held.
  access::Window open_window(uintptr_t address, size_t max_bytes, cache::Access access);
  // A window that stays whatever else is translated, until it is unpinned.
  access::Window pin_window(uintptr_t address, size_t max_bytes, cache::Access access);
  // False: no such window is held.
  bool unpin_window(const access::Window& window);
  uint32_t free_windows() const;

  // Puts its direct table where instrumented code looks.
  void present();

  // Gives up the pins of [first, first + count), a range that is about to be freed.
  void drop(BlockId first, uint64_t count);
  // Gives up every pin. The direct table matches nothing afterwards.
  void flush();

  cache::Client& client() { return client_; }
  const SatcShape& shape() const { return shape_; }

 private:
  struct HeldWindow {
    FrameId frame = kNoFrame;
    uint32_t holders = 0;
    bool orphaned = false;  // its private entry is gone; the pin is the window's now
  };

  // What a direct entry has pinned.
  struct DirectPin {
    FrameId frame = kNoFrame;
    BlockId block{0};
  };

  bool has_private() const { return config_.levels <= SatcLevels::kPrivate; }
  uint64_t block_bytes() const { return uint64_t{1} << config_.block_shift; }
  BlockId block_of(uintptr_t address) const {
    return BlockId((address - SPW_MANAGED_BASE) >> config_.block_shift);
  }
  uint64_t offset_of(uintptr_t address) const { return address & (block_bytes() - 1); }
  uintptr_t address_of(BlockId block) const {
    return SPW_MANAGED_BASE + (block.value << config_.block_shift);
  }
  __spw_satc_entry& direct_entry(uintptr_t address) {
    uint64_t granule = address >> SPW_GRANULE_SHIFT;
    return direct_[granule & direct_mask_];
  }

  void read_managed(uintptr_t address, std::byte* bytes, size_t size);
  void write_managed(uintptr_t address, const std::byte* bytes, size_t size);
  SatcEntry& lookup(BlockId block, cache::Access access);
  SatcEntry& pin_alone(BlockId block, cache::Access access);
  void pin_into(SatcEntry& entry, BlockId block, cache::Access access);
  SatcEntry& miss(BlockId block, cache::Access access);
  uint32_t ways_limit(BlockId block);
  void approach(BlockId block);
  void grow();
  platform::Mapping map_tables(const SatcShape& shape);
  void size_direct();
  uint64_t footprint_bytes() const;
  void fill_direct(uintptr_t address, const SatcEntry& entry);
  bool withdraw_direct(BlockId block);
  void drop_direct(BlockId first, uint64_t count);
  void evicted(BlockId block, const SatcEntry& entry);
  void retire(FrameId frame);
  void let_leave();

  const TranslatorConfig config_;
  cache::Client& client_;
  SatcShape shape_;
  __spw_thread& thread_;
  platform::Mapping tables_;  // of private_ and ghosts_
  PrivateSatc private_;
  GhostList ghosts_;
  platform::Mapping
      direct_memory_;  // for the most entries there can ever be; used as far as the mask reaches
  __spw_satc_entry* direct_;
  uint64_t direct_mask_ = 0;
  BlockId last_miss_{0};
  uint32_t growth_pause_ = 0;  // full sets to meet before the budget is asked again
  std::array<FrameId, kRingPins> ring_;
  uint32_t ring_at_ = 0;
  // What found no place when the SATC grew, more than the ring may take at once: pinned for so many misses.
  std::vector<FrameId> leaving_;
  uint32_t leaving_for_ = 0;
  bool growing_ = false;
  SatcEntry alone_;                     // without a private SATC: the last translation
  std::vector<DirectPin> direct_pins_;  // kDirect: of each direct entry
  std::array<HeldWindow, access::kWindowsPerThread> windows_;
  telemetry::CounterBlock& counters_;
  bool busy_ = false;
  alignas(64) std::array<std::byte, SPW_ACCESS_BYTES_MAX> crossing_;
};

}  // namespace spw::access
