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
      [](void* context, uint64_t index, Atomic<uint64_t>&) {
        auto* f = static_cast<Growing*>(context);
        if (f->run.count == 0) f->run.first = index;
        if (index != f->run.first + f->run.count) return false;
        return ++f->run.count < f->blocks_max;
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

// As visit_present() for what is dirty. Takes tag bits away that have nothing to say any more.
bool PageIndex::visit_dirty(PageNode* node, uint64_t base, uint64_t first, uint64_t last, VisitDirty visit,
                            void* context) {
  const unsigned first_slot = node->slot_of(first);
  const unsigned past_last_slots = PageNode::kSlots - 1 - node->slot_of(last);
  const uint64_t asked_for = ~uint64_t{0} << first_slot & ~uint64_t{0} >> past_last_slots;
  bool more = true;
  for (uint64_t tags = node->tags.load_seq_cst() & asked_for; tags != 0 && more; tags &= tags - 1) {
    const auto i = static_cast<unsigned>(std::countr_zero(tags));
    const uint64_t word = node->slots[i].load_seq_cst();
    const uint64_t at = base + (uint64_t{i} << node->shift);
    const uint64_t at_last = at + ((uint64_t{1} << node->shift) - 1);
    if (node->is_leaf() ? (word & kDirty) != 0 : word != 0)
      more = node->is_leaf() ? visit(context, at, node->slots[i])
                             : visit_dirty(PageNode::child_in(word), at, std::max(first, at),
                                           std::min(last, at_last), visit, context);
    if (may_be_dirty(node, i)) continue;
    const uint64_t bit = uint64_t{1} << i;
    node->tags.fetch_and_seq_cst(~bit);
    if (may_be_dirty(node, i)) node->tags.fetch_or_seq_cst(bit);
  }
  return more;
}

}  // namespace spw::files
