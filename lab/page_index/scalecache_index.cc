#include "lab/page_index/scalecache_index.h"

#include "base/check.h"

namespace spw::lab {

using files::PageNode, files::UseSlots;

// ---- Entries ----

ScaleCacheIndex::Insertion ScaleCacheIndex::insert(uint64_t index, uint64_t entry) {
  SPW_CHECK(entry != 0 && entry < kEntriesEnd);
  UseSlots::Guard inside(uses_);
  // Mostly the leaf is there and LIVE. A leaf that can be reserved is linked, so its place is right.
  const uint64_t root = root_.load_acquire();
  if (covers(root, index)) {
    Path path(root);
    if (descend(index, &path)) {
      PageNode* leaf = path.leaf();
      Atomic<uint64_t>& slot = leaf->slots[leaf->slot_of(index)];
      if (slot.load_acquire() != 0) return Insertion::kOccupied;
      if (leaf->state.reserve()) {
        uint64_t none = 0;
        if (slot.cas_strong_acq_rel(none, entry)) return Insertion::kInserted;
        release(path, path.height - 1);
        return Insertion::kOccupied;
      }
    }
  }
  return insert_from_the_root(index, entry);
}

bool ScaleCacheIndex::insert_dirty(uint64_t index, uint64_t entry, uint32_t* dirtied) {
  SPW_CHECK(entry != 0 && entry < kEntriesEnd);
  return PageIndex::insert_dirty(index, entry, dirtied);
}

bool ScaleCacheIndex::replace(uint64_t index, uint64_t expected, uint64_t entry) {
  SPW_CHECK(expected != 0 && entry != 0 && entry < kEntriesEnd);
  UseSlots::Guard inside(uses_);
  PageNode* leaf = leaf_of(index);
  if (leaf == nullptr) return false;
  Atomic<uint64_t>& slot = leaf->slots[leaf->slot_of(index)];
  uint64_t word = slot.load_acquire();
  do {
    if (entry_of(word) != expected) return false;
  } while (!slot.cas_weak_acq_rel(word, entry | (word & kDirty)));
  return true;
}

ScaleCacheIndex::Found ScaleCacheIndex::next_present(uint64_t from) const {
  Found found;
  visit_present(
      from, ~uint64_t{0},
      [](void* context, uint64_t index, uint64_t entry) {
        *static_cast<Found*>(context) = {index, entry};
        return false;
      },
      &found);
  return found;
}

uint64_t ScaleCacheIndex::node_count() const {
  UseSlots::Guard inside(uses_);
  const uint64_t root = root_.load_acquire();
  return root == 0 ? 0 : count_nodes(node_of(root));
}

uint64_t ScaleCacheIndex::count_nodes(const PageNode* node) {
  uint64_t count = 1;
  if (node->is_leaf()) return count;
  for (const Atomic<uint64_t>& slot : node->slots) {
    const PageNode* child = PageNode::child_in(slot.load_acquire());
    if (child != nullptr) count += node->shift == PageNode::kBits ? 1 : count_nodes(child);
  }
  return count;
}

// ---- Dirty tags: 6 of page_index.h ----

bool ScaleCacheIndex::set_dirty(uint64_t index, uint32_t* dirtied) {
  UseSlots::Guard inside(uses_);
  bool is_set = false;
  if (dirtied != nullptr) *dirtied = 0;
  for (;;) {
    const uint64_t root = root_.load_acquire();
    if (!covers(root, index)) return is_set;
    Path path(root);
    if (!descend(index, &path)) return is_set;
    PageNode* leaf = path.leaf();
    Atomic<uint64_t>& slot = leaf->slots[leaf->slot_of(index)];
    uint64_t word = slot.load_seq_cst();
    do {
      if (word == 0) return is_set;
    } while ((word & kDirty) == 0 && !slot.cas_weak_seq_cst(word, word | kDirty));
    if (dirtied != nullptr && (word & kDirty) == 0) ++*dirtied;
    is_set = true;
    tag_above(path, index);
    if (root_.load_seq_cst() == root) return true;
  }
}

bool ScaleCacheIndex::is_dirty(uint64_t index) const {
  UseSlots::Guard inside(uses_);
  const PageNode* leaf = leaf_of(index);
  return leaf != nullptr && (leaf->slots[leaf->slot_of(index)].load_seq_cst() & kDirty) != 0;
}

}  // namespace spw::lab
