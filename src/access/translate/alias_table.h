// Foreign code: a managed address that code which was not instrumented dereferences faults, because managed space is
// mapped without access. The block's frame is then mapped a second time, at its own address: the same physical page, so
// instrumented and foreign code see one truth.
//
// Invariants
//   a slot in use holds one reference on its frame, and [address of block, + block_bytes) is mapped to that frame
//   a slot is writable => its frame was marked dirty after that reference was taken
//   a frame is unpinned only after its mapping was replaced by one without access
// A mapping that is withdrawn under a running foreign access only makes that access fault again. An instruction touches
// few blocks, so with as many slots for each thread everyone gets on (alias_slots() in engine.cc).
// Threads: any; one mutex. Taken inside a SIGSEGV handler, which is sound because the fault is synchronous and no code
// that holds the mutex touches managed addresses. Lifetime: outlives every thread that may fault.
// Limits: `slots`. System calls do not fault into the handler (they return EFAULT): libc covers those.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "access/translate/translator.h"
#include "platform/file.h"

namespace spw::access {

inline constexpr uint32_t kAliasSlotsMax = 128;

class AliasTable {
 public:
  // `frames`: the memory file in which frame f stands at f << block_shift; outlives this.
  AliasTable(const TranslatorConfig& config, const platform::File& frames, uint32_t slots);

  // Makes `address` accessible to foreign code for a load or a store.
  Status admit(cache::Client& client, uintptr_t address, bool store);
  // Withdraws the mapping of every block in [address, address + bytes): before the range is given back.
  void withdraw(cache::Client& client, uintptr_t address, uint64_t bytes);

 private:
  struct Slot {
    bool used = false;
    bool writable = false;
    BlockId block;
    FrameId frame = kNoFrame;
  };

  uint64_t block_bytes() const { return uint64_t{1} << config_.block_shift; }
  void* address_of(BlockId block) const {
    return reinterpret_cast<void*>(SPW_MANAGED_BASE + (block.value << config_.block_shift));
  }
  Slot* find(BlockId block);
  Status vacate(cache::Client& client, Slot& slot);
  Status map(const Slot& slot);

  const TranslatorConfig config_;
  const platform::File& frames_;
  std::mutex mutex_;
  std::vector<Slot> slots_;
  size_t hand_ = 0;
};

}  // namespace spw::access
