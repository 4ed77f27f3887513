// Takes memory that the program filled before managed space was watched into the cache.
//
// When the range is watched (PlacedPages::begin), nothing more comes to be there but through the runtime. run() then
// goes over the live ranges in the process's page map: what is present becomes a resident, dirty block of the cache (of
// a block that is there in part, the rest is filled with zeros first). What is dead is dropped, so that it faults.
//
// A forked child takes over what it has of its parent's memory so (is_in_child): all of it faults already, and what is
// absent may be on a store.
//
// Threads: one, while no other brings blocks in, evicts what is not adopted yet, or
// adds to the live range. Ranges may be removed meanwhile (RegionMap::remove: not
// live first, discarded then): dead pages go here, and the discard finds nothing.
// Errors: of reading the page map, and of the kernel's memory calls.
#pragma once

#include <cstdint>

#include "access/mapped/placed_pages.h"
#include "cache/cache.h"
#include "platform/resident_pages.h"
#include "region/region_map.h"

namespace spw::access {

struct Adoption {
  std::byte* base;      // of block 0
  uint64_t used_bytes;  // nothing behind was ever live
  unsigned block_shift;
  const platform::ResidentPages& pages;
  PlacedPages& placed;
  const region::RegionMap& regions;
  cache::SharedCache& cache;
  cache::Client& client;
  bool is_in_child = false;

  Status run() const;
};

}  // namespace spw::access
