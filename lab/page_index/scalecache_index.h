// The whole interface of ScaleCache's page index, ccXArray (EuroSys '24, section 4), by which a page cache finds its
// pages.
//
// Buffered files need the dirty blocks of a file in order, and no more (files/page_index, which has the tree, its
// invariants and their argument): a block's frame they find by the cache's table. What the paper's index does beyond
// that (entries, lookups that write nothing shared, insertion that tells who won, exchange of an entry, walks over what
// is there) is here, on the same tree, to be measured (bench/page_index_bench.cc, `./dev bench files`) and tested.
//
// Invariant: 0 < entry < kEntriesEnd.
// Threads, ordering, lifetime, limits: as files/page_index/page_index.h has them; find() acquires what insert() or
// replace() released, and set_dirty() orders an owner's dirty bits as insert_dirty() does.
#pragma once

#include <cstdint>

#include "files/page_index/page_index.h"

namespace spw::lab {

class ScaleCacheIndex : public files::PageIndex {
 public:
  static constexpr uint64_t kEntriesEnd = kDirty;
  using PageIndex::Insertion;
  struct Found {
    uint64_t index = 0;
    uint64_t entry = 0;  // 0: there is none
  };

  using PageIndex::PageIndex;

  // The entry of `index`, or 0. Writes nothing shared and never waits.
  uint64_t find(uint64_t index) const {
    files::UseSlots::Guard inside(uses_);
    const files::PageNode* leaf = leaf_of(index);
    return leaf ? entry_of(leaf->slots[leaf->slot_of(index)].load_acquire()) : 0;
  }
  // 0 < entry < kEntriesEnd. kOccupied: there is one already, and it stays. kNoMemory: nothing has changed.
  Insertion insert(uint64_t index, uint64_t entry);
  // Where there is no entry inserts one, and makes what is there dirty, in one descent; else as PageIndex's.
  bool insert_dirty(uint64_t index, uint64_t entry, uint32_t* dirtied);
  // False: its entry is not `expected`. It stays as dirty as it is.
  bool replace(uint64_t index, uint64_t expected, uint64_t entry);
  // What was there, or 0.
  uint64_t erase(uint64_t index) {
    return erase_where(index, [](uint64_t) { return true; });
  }
  // False: its entry is not `expected`, which is not 0.
  bool erase_if(uint64_t index, uint64_t expected) {
    return erase_where(index, [=](uint64_t word) { return entry_of(word) == expected; }) != 0;
  }

  // False: there is no entry. *dirtied as of insert_dirty().
  bool set_dirty(uint64_t index, uint32_t* dirtied = nullptr);
  // May say no while clear_dirty() asks about the block.
  bool is_dirty(uint64_t index) const;

  // The first entry at or after `from`.
  Found next_present(uint64_t from) const;
  // visit(index, entry) for every entry in [first, last], in order. Of those that come or go meanwhile some are
  // visited. Nodes that are erased in the time stay in memory: a short one.
  template <class Visit>
  void for_each_present(uint64_t first, uint64_t last, Visit visit) const {
    visit_present(
        first, last,
        [](void* context, uint64_t index, uint64_t entry) {
          (*static_cast<Visit*>(context))(index, entry);
          return true;
        },
        &visit);
  }

  // Nodes in the tree, counted in a walk through all that are no leaves.
  uint64_t node_count() const;
  uint64_t memory_bytes() const { return sizeof(*this) + node_count() * sizeof(files::PageNode); }

 private:
  static uint64_t count_nodes(const files::PageNode* node);
};

}  // namespace spw::lab
