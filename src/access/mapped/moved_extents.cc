#include "access/mapped/moved_extents.h"

#include "base/need.h"

namespace spw::access {

using cache::kExtentBytes;
using platform::Advice;

Result<std::unique_ptr<MovedExtents>> MovedExtents::create(const platform::UserFault& faults,
                                                           HintTable& hints, std::byte* base,
                                                           unsigned block_shift, BlockId end,
                                                           uint32_t slots) {
  if (!faults.moves())
    return Status::sentence(ENOTSUP, "memory cannot be moved here: Linux 6.8 or later is needed");
  std::unique_ptr<MovedExtents> made(new MovedExtents(faults, hints, base, block_shift, end, slots));
  auto memory = platform::map_anonymous(slots * kExtentBytes, kExtentBytes);
  if (!memory) return memory.status();
  made->memory_ = std::move(*memory);
  for (const Advice advice : {Advice::kHugePage, Advice::kDontFork})
    if (Status s = platform::advise(made->memory_.data(), made->memory_.bytes(), advice); !s) return s;
  made->is_registered_.resize(slots);
  return made;
}

// Memory that is missing in a registered range only userfaultfd can make, and only small pages of it: so the slot is
// registered, as it has to be for what is moved back, when it has its page. That this is huge is certain only when it
// was asked for; EINVAL: it cannot be.
bool MovedExtents::prepare(uint32_t slot) {
  std::byte* const at = this->slot(slot);
  if (is_registered_[slot]) need(faults_.unregister_range(at, kExtentBytes));
  const bool has_memory = static_cast<bool>(platform::advise(at, kExtentBytes, Advice::kPopulateWrite)) &&
                          static_cast<bool>(platform::advise(at, kExtentBytes, Advice::kCollapse));
  is_registered_[slot] = has_memory && static_cast<bool>(faults_.register_range(at, kExtentBytes));
  if (is_registered_[slot]) return true;
  release(slot);
  return false;
}

void MovedExtents::release(uint32_t slot) {
  need(platform::advise(this->slot(slot), kExtentBytes, Advice::kDontNeed));
}

void MovedExtents::set_hints(BlockId first, HintTable::Hint hint) {
  const uint64_t blocks = kExtentBytes >> block_shift_;
  for (uint64_t i = 0; i < blocks; ++i) hints_.set(first + i, hint);
}

// False: all of it is where it was.
bool MovedExtents::move_whole(std::byte* to, std::byte* from) {
  if (faults_.move(to, from, kExtentBytes)) return true;
  (void)faults_.move(from, to, kExtentBytes);  // a part may have been moved
  return false;
}

bool MovedExtents::place(uint32_t slot, BlockId first) {
  std::byte* const address = address_of(first);
  if (!platform::advise(address, kExtentBytes, Advice::kDontNeed)) return false;
  if (!move_whole(address, this->slot(slot))) return false;
  set_hints(first, HintTable::Hint::kGo);
  return true;
}

bool MovedExtents::take_back(uint32_t slot, BlockId first) {
  set_hints(first, HintTable::Hint::kUnseen);
  if (move_whole(this->slot(slot), address_of(first))) return true;
  set_hints(first, HintTable::Hint::kGo);
  return false;
}

}  // namespace spw::access
