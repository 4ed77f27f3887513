// The dirty tags of the page index: 6 and 7 of page_index.h.
#include <algorithm>
#include <bit>

#include "files/page_index/page_index.h"

namespace spw::files {

// The tags of the nodes on the way to a slot whose dirty bit is set.
void PageIndex::tag_above(const Path& path, uint64_t index) {
  for (unsigned level = path.height; level-- > 0;) {
    PageNode* node = path.nodes[level];
    const uint64_t bit = uint64_t{1} << node->slot_of(index);
    if ((node->tags.load_seq_cst() & bit) == 0) node->tags.fetch_or_seq_cst(bit);
  }
}

// An entry is there after this and is dirty; *was: what was there. False: the leaf is DEAD, or was.
bool PageIndex::put_dirty(const Path& path, uint64_t index, uint64_t entry, uint64_t* was) {
  PageNode* leaf = path.leaf();
  Atomic<uint64_t>& slot = leaf->slots[index % PageNode::kSlots];
  *was = slot.load_seq_cst();
  for (;;) {
    if (*was == 0) {
      if (!leaf->state.reserve()) return false;
      if (slot.cas_strong_seq_cst(*was, entry | kDirty)) return true;
      release(path, path.height - 1);
      *was = slot.load_seq_cst();
    } else if ((*was & kDirty) != 0 || slot.cas_weak_seq_cst(*was, *was | kDirty)) {
      return true;
    }
  }
}

// Mostly the leaf is there and LIVE. One that can be reserved is linked, so its place is right.
bool PageIndex::insert_dirty(uint64_t index, uint64_t entry, uint32_t* dirtied) {
  UseSlots::Guard inside(uses_);
  *dirtied = 0;
  for (;;) {
    const uint64_t root = root_.load_acquire();
    Path path(root);
    uint64_t was;
    if (covers(root, index) && descend(index, &path) && put_dirty(path, index, entry, &was)) {
      if ((was & kDirty) == 0) ++*dirtied;
      tag_above(path, index);
      if (root_.load_seq_cst() == root) return true;
    } else if (insert_from_the_root(index, entry) == Insertion::kNoMemory) {
      return false;
    }
  }
}

bool PageIndex::insert_dirty_run(uint64_t first, uint64_t count, uint32_t* dirtied) {
  *dirtied = 0;
  while (count > 0) {
    const auto begin = static_cast<unsigned>(first % PageNode::kSlots);
    const uint64_t piece = std::min<uint64_t>(count, PageNode::kSlots - begin);
    if (!insert_dirty_in_leaf(first, slots_between(begin, begin + static_cast<unsigned>(piece) - 1), dirtied))
      return false;
    first += piece;
    count -= piece;
  }
  return true;
}

// `first`: the block of the first of the slots. As insert_dirty().
bool PageIndex::insert_dirty_in_leaf(uint64_t first, uint64_t slots, uint32_t* dirtied) {
  UseSlots::Guard inside(uses_);
  for (;;) {
    const uint64_t root = root_.load_acquire();
    Path path(root);
    if (covers(root, first) && descend(first, &path) && put_dirty_run(path, slots, dirtied)) {
      Atomic<uint64_t>& tags = path.leaf()->tags;
      if ((~tags.load_seq_cst() & slots) != 0) tags.fetch_or_seq_cst(slots);
      tag_above(path, first);
      if (root_.load_seq_cst() == root) return true;
    } else if (insert_from_the_root(first, 1) == Insertion::kNoMemory) {
      return false;
    }
  }
}

// Entries are in these slots of the leaf after this, and are dirty. False: it is DEAD, or was, and nothing is there.
// While all of them are dirty already nothing has to be reserved.
bool PageIndex::put_dirty_run(const Path& path, uint64_t slots, uint32_t* dirtied) {
  PageNode* leaf = path.leaf();
  while (slots != 0 && (leaf->slots[std::countr_zero(slots)].load_seq_cst() & kDirty) != 0)
    slots &= slots - 1;
  if (slots == 0) return true;
  const auto reserved = static_cast<uint32_t>(std::popcount(slots));
  if (!leaf->state.reserve(reserved)) return false;
  uint32_t filled = 0;
  for (; slots != 0; slots &= slots - 1) {
    Atomic<uint64_t>& slot = leaf->slots[std::countr_zero(slots)];
    uint64_t was = slot.load_seq_cst();
    while ((was & kDirty) == 0 && !slot.cas_weak_seq_cst(was, (was == 0 ? 1 : was) | kDirty)) {
    }
    filled += was == 0;
    *dirtied += (was & kDirty) == 0;
  }
  if (filled < reserved) release(path, path.height - 1, reserved - filled);
  return true;
}

void PageIndex::prefetch(uint64_t index) const {
  UseSlots::Guard inside(uses_);
  const PageNode* leaf = leaf_of(index);
  if (leaf == nullptr) return;
  __builtin_prefetch(leaf, 1);
  __builtin_prefetch(&leaf->slots[index % PageNode::kSlots], 1);
}

PageIndex::Run PageIndex::next_dirty_run(uint64_t from, uint64_t last, uint64_t blocks_max) {
  struct Growing {
    Run run;
    uint64_t blocks_max;
  } found{{}, blocks_max};
  if (blocks_max == 0) return found.run;
  visit_dirty(
      from, last,
      [](void* context, PageNode& leaf, uint64_t base, uint64_t slots) {
        auto* f = static_cast<Growing*>(context);
        for (; slots != 0; slots &= slots - 1) {
          const auto i = static_cast<unsigned>(std::countr_zero(slots));
          if ((leaf.slots[i].load_seq_cst() & kDirty) == 0) continue;
          if (f->run.count == 0) f->run.first = base + i;
          if (base + i != f->run.first + f->run.count) return false;
          if (++f->run.count == f->blocks_max) return false;
        }
        return true;
      },
      &found);
  return found.run;
}

void PageIndex::visit_dirty(uint64_t first, uint64_t last, VisitDirty visit, void* context) {
  std::lock_guard lock(tag_mutex_);
  UseSlots::Guard inside(uses_);
  const uint64_t root = root_.load_seq_cst();
  if (!covers(root, first) || last < first) return;
  visit_dirty(node_of(root), 0, first, std::min(last, last_index_of(root)), visit, context);
}

bool PageIndex::may_be_dirty(const PageNode* node, unsigned slot) {
  const uint64_t word = node->slots[slot].load_seq_cst();
  if (node->is_leaf()) return (word & kDirty) != 0;
  return word != 0 && PageNode::child_in(word)->tags.load_seq_cst() != 0;
}

// As visit_present() for what is dirty, leaf by leaf. Takes tag bits away that have nothing to say any more.
bool PageIndex::visit_dirty(PageNode* node, uint64_t base, uint64_t first, uint64_t last, VisitDirty visit,
                            void* context) {
  const uint64_t asked_for = slots_between(node->slot_of(first), node->slot_of(last));
  uint64_t tags = node->tags.load_seq_cst() & asked_for;
  if (node->is_leaf()) {
    const bool more = tags == 0 || visit(context, *node, base, tags);
    take_away_tags(node, tags);
    return more;
  }
  bool more = true;
  for (; tags != 0 && more; tags &= tags - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(tags));
    const uint64_t word = node->slots[i].load_seq_cst();
    const uint64_t at = base + (uint64_t{i} << node->shift);
    const uint64_t at_last = at + ((uint64_t{1} << node->shift) - 1);
    if (word != 0)
      more = visit_dirty(PageNode::child_in(word), at, std::max(first, at), std::min(last, at_last), visit,
                         context);
    take_away_tags(node, tags & -tags);
  }
  return more;
}

// Those of them that say of their slots what is not so any more. Under the tag lock.
void PageIndex::take_away_tags(PageNode* node, uint64_t tags) {
  const auto still_so = [&](uint64_t asked) {
    uint64_t so = 0;
    for (; asked != 0; asked &= asked - 1)
      if (may_be_dirty(node, static_cast<unsigned>(std::countr_zero(asked)))) so |= asked & -asked;
    return so;
  };
  const uint64_t gone = tags & ~still_so(tags);
  if (gone == 0) return;
  node->tags.fetch_and_seq_cst(~gone);
  if (const uint64_t back = still_so(gone); back != 0) node->tags.fetch_or_seq_cst(back);
}

}  // namespace spw::files
