#include "files/page_index/page_index.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace spw::files {

namespace {

unsigned height_for(uint64_t index) {
  const auto bits = static_cast<unsigned>(std::bit_width(index));
  return std::max(1u, (bits + PageNode::kBits - 1) / PageNode::kBits);
}

}  // namespace

PageIndex::~PageIndex() {
  PageNodes::Bundler bundler(pool_);
  if (PageNode* root = node_of(root_.load_relaxed())) give_back(root, &bundler);
}

void PageIndex::give_back(PageNode* node, PageNodes::Bundler* bundler) {
  for (Atomic<uint64_t>& slot : node->slots) {
    const uint64_t word = slot.load_relaxed();
    if (word == 0) continue;
    if (!node->is_leaf()) give_back(PageNode::child_in(word), bundler);
    slot.store_relaxed(0);
  }
  node->tags.store_relaxed(0);
  bundler->add(node);
}

bool PageIndex::descend(uint64_t index, Path* path) {
  // Not by the nodes' own shifts: these lie beside what others write.
  unsigned shift = (path->height - 1) * PageNode::kBits;
  for (unsigned level = 0; level + 1 < path->height; ++level, shift -= PageNode::kBits) {
    const Atomic<uint64_t>& slot = path->nodes[level]->slots[(index >> shift) % PageNode::kSlots];
    PageNode* child = PageNode::child_in(slot.load_acquire());
    if (child == nullptr) return false;
    path->nodes[level + 1] = child;
  }
  return true;
}

// ---- Insertion ----

PageIndex::Insertion PageIndex::insert_from_the_root(uint64_t index, uint64_t entry) {
  for (;;) {
    const uint64_t root = root_.load_acquire();
    if (!covers(root, index)) {
      if (!grow(root, index)) return Insertion::kNoMemory;
      continue;
    }
    Path path(root);
    bool is_reserved = false;  // the node at `level`, by us
    unsigned level = 0;
    Step step = Step::kDown;
    while (step == Step::kDown && level + 1 < path.height) {
      step = step_down(index, &path, level, &is_reserved);
      if (step == Step::kDown) ++level;
    }
    if (step == Step::kFromTheRoot) continue;
    if (step == Step::kNoMemory) {
      if (is_reserved) release(path, level);
      return Insertion::kNoMemory;
    }
    PageNode* leaf = path.leaf();
    Atomic<uint64_t>& slot = leaf->slots[leaf->slot_of(index)];
    uint64_t found = slot.load_acquire();
    if (found == 0 && !is_reserved) {
      if (!leaf->state.reserve()) continue;
      is_reserved = true;
    }
    if (found == 0 && slot.cas_strong_acq_rel(found, entry)) return Insertion::kInserted;
    if (is_reserved) release(path, level);
    return Insertion::kOccupied;
  }
}

// From path->nodes[level] to a child that is LIVE, or was when it was looked at: makes one, revives one, or finds one.
// Of those it made or revived it has a reservation then, and none of the node.
PageIndex::Step PageIndex::step_down(uint64_t index, Path* path, unsigned level, bool* is_reserved) {
  PageNode* node = path->nodes[level];
  Atomic<uint64_t>& slot = node->slots[node->slot_of(index)];
  for (;;) {
    uint64_t word = slot.load_acquire();
    PageNode* child = PageNode::child_in(word);
    if (child != nullptr) {
      const NodeState state = child->state.load_acquire();
      if (state.is_live()) {
        path->nodes[level + 1] = child;
        if (*is_reserved) release(*path, level);
        *is_reserved = false;
        return Step::kDown;
      }
      if (state.is_unlinked()) {
        slot.cas_strong_acq_rel(word, 0);
        continue;
      }
    }
    if (!*is_reserved && !node->state.reserve()) return Step::kFromTheRoot;
    *is_reserved = true;
    if (child != nullptr) {
      if (!child->state.revive()) continue;
      dead_count_.fetch_sub_relaxed(1);
      path->nodes[level + 1] = child;
      return Step::kDown;
    }
    PageNode* fresh = pool_.take(node->shift - PageNode::kBits);
    if (fresh == nullptr) return Step::kNoMemory;
    fresh->state.start(1);
    if (slot.cas_strong_seq_cst(word, fresh->as_word())) {
      path->nodes[level + 1] = fresh;
      return Step::kDown;
    }
    pool_.put(fresh);
  }
}

// One more level, or the first ones. False: no memory.
bool PageIndex::grow(uint64_t root, uint64_t index) {
  const unsigned height = root == 0 ? height_for(index) : height_of(root) + 1;
  PageNode* fresh = pool_.take((height - 1) * PageNode::kBits);
  if (fresh == nullptr) return false;
  fresh->state.start(root == 0 ? 0 : 1);
  if (root != 0) {
    fresh->slots[0].store_relaxed(node_of(root)->as_word());
    fresh->tags.store_relaxed(1);  // whoever sets a tag now may know only the old root
  }
  if (root_.cas_strong_seq_cst(root, fresh->as_word() | height)) return true;
  fresh->slots[0].store_relaxed(0);
  fresh->tags.store_relaxed(0);
  pool_.put(fresh);
  return true;
}

// Takes so many from the count of path.nodes[level], and one of those above while nodes die of it. True if any did.
bool PageIndex::release(const Path& path, unsigned level, uint32_t counted) {
  bool any = false;
  for (; path.nodes[level]->state.take(std::exchange(counted, 1)) && level > 0; --level) {
    if (!path.nodes[level]->state.die()) break;
    dead_count_.fetch_add_relaxed(1);
    any = true;
  }
  return any;
}

// ---- Removal ----

void PageIndex::reclaim_if_many_died() {
  if (dead_node_count() > std::max(kDeadNodesMin, left_by_sweep_.load_relaxed() / 4)) reclaim();
}

// Leaf by leaf: what is erased may be reclaimed, so not in one scan.
void PageIndex::erase_clean(uint64_t first, uint64_t count) {
  if (count == 0) return;
  for (const uint64_t last = last_of(first, count);;) {
    uint64_t found = last;
    bool is_any = false;
    struct Found {
      uint64_t& index;
      bool& is_any;
    } context{found, is_any};
    visit_present(
        first, last,
        [](void* of, uint64_t index, uint64_t) {
          static_cast<Found*>(of)->index = index;
          static_cast<Found*>(of)->is_any = true;
          return false;
        },
        &context);
    if (!is_any) return;
    const uint64_t leaf_last = std::min(last, found | (PageNode::kSlots - 1));
    erase_clean_in_leaf(found, leaf_last);
    if (leaf_last == last) return;
    first = leaf_last + 1;
  }
}

void PageIndex::erase_clean_in_leaf(uint64_t first, uint64_t last) {
  bool any_died = false;
  {
    UseSlots::Guard inside(uses_);
    const uint64_t root = root_.load_acquire();
    if (!covers(root, first)) return;
    Path path(root);
    if (!descend(first, &path)) return;
    uint32_t erased = 0;
    for (uint64_t at = first;; ++at) {
      Atomic<uint64_t>& slot = path.leaf()->slots[at % PageNode::kSlots];
      uint64_t word = slot.load_acquire();
      while (word != 0 && (word & kDirty) == 0)
        if (slot.cas_weak_acq_rel(word, 0)) {
          ++erased;
          break;
        }
      if (at == last) break;
    }
    if (erased > 0) any_died = release(path, path.height - 1, erased);
  }
  if (any_died) reclaim_if_many_died();
}

uint64_t PageIndex::dead_node_count() const {
  return static_cast<uint64_t>(std::max<int64_t>(0, dead_count_.load_relaxed()));
}

// It is alone in unlinking, so nothing it walks on is freed under it;
// it need not be inside, and must not be when it frees.
void PageIndex::reclaim() {
  Swept swept;
  if (std::unique_lock lock(reclaim_mutex_, std::try_to_lock); lock) {
    if (const uint64_t root = root_.load_acquire(); root != 0) {
      Path path(root);
      sweep(&path, 0, &swept);
      left_by_sweep_.store_relaxed(swept.left);
    }
  }
  if (swept.batch != nullptr)
    pool_.retire(swept.batch);
  else if (pool_.retired_count() != 0)
    pool_.free_retired();
}

// Unlinks what is dead below path->nodes[level].
void PageIndex::sweep(Path* path, unsigned level, Swept* swept) {
  PageNode* node = path->nodes[level];
  ++swept->left;
  if (node->is_leaf()) return;
  for (Atomic<uint64_t>& slot : node->slots) {
    uint64_t word = slot.load_acquire();
    if (word == 0) continue;
    PageNode* child = PageNode::child_in(word);
    path->nodes[level + 1] = child;
    if (child->state.load_acquire().is_live()) sweep(path, level + 1, swept);
    // One that was a root: nobody came by it as a child when it became empty.
    if (child->state.load_acquire().is_empty() && child->state.die()) {
      dead_count_.fetch_add_relaxed(1);
      release(*path, level);
    }
    if (!child->state.unlink()) continue;
    slot.cas_strong_acq_rel(word, 0);
    take_out(child, swept);
  }
}

// `node` is UNLINKED: what hangs below it is DEAD, and stays so.
void PageIndex::take_out(PageNode* node, Swept* swept) {
  if (!node->is_leaf()) {
    for (Atomic<uint64_t>& slot : node->slots) {
      const uint64_t word = slot.load_acquire();
      if (word == 0) continue;
      SPW_CHECK(PageNode::child_in(word)->state.unlink());
      slot.store_release(0);
      take_out(PageNode::child_in(word), swept);
    }
  }
  node->next.store_relaxed(swept->batch);
  swept->batch = node;
  dead_count_.fetch_sub_relaxed(1);
}

// ---- Scans of what is present ----

void PageIndex::visit_present(uint64_t first, uint64_t last, VisitEntry visit, void* context) const {
  UseSlots::Guard inside(uses_);
  const uint64_t root = root_.load_acquire();
  if (!covers(root, first) || last < first) return;
  visit_present(node_of(root), 0, first, std::min(last, last_index_of(root)), visit, context);
}

// `base`: the first index of the node's, which has `first` and `last`, too. False: `visit` wants no more.
bool PageIndex::visit_present(const PageNode* node, uint64_t base, uint64_t first, uint64_t last,
                              VisitEntry visit, void* context) {
  const unsigned end = node->slot_of(last) + 1;
  for (unsigned i = node->slot_of(first); i < end; ++i) {
    const uint64_t word = node->slots[i].load_acquire();
    if (word == 0) continue;
    const uint64_t at = base + (uint64_t{i} << node->shift);
    const uint64_t at_last = at + ((uint64_t{1} << node->shift) - 1);
    const bool more = node->is_leaf() ? visit(context, at, entry_of(word))
                                      : visit_present(PageNode::child_in(word), at, std::max(first, at),
                                                      std::min(last, at_last), visit, context);
    if (!more) return false;
  }
  return true;
}

// ---- Invariants ----

void PageIndex::check_invariants() const {
  Counted counted;
  if (const uint64_t root = root_.load_acquire(); root != 0) {
    SPW_CHECK(node_of(root)->state.load_acquire().is_live());
    check_node(node_of(root), (height_of(root) - 1) * PageNode::kBits, true, &counted);
  }
  SPW_CHECK(static_cast<int64_t>(counted.dead) == dead_count_.load_relaxed());
}

// `was_root`: the root, or one that may have been it.
void PageIndex::check_node(const PageNode* node, unsigned shift, bool was_root, Counted* counted) const {
  const NodeState state = node->state.load_acquire();
  SPW_CHECK(node->shift == shift);
  SPW_CHECK(!state.is_unlinked());
  SPW_CHECK(state.is_dead() ? state.count() == 0 : state.count() > 0 || was_root);
  counted->dead += state.is_dead();
  uint32_t count = 0;
  for (unsigned i = 0; i < PageNode::kSlots; ++i) {
    const uint64_t word = node->slots[i].load_acquire();
    if (word == 0) continue;
    Counted below;
    if (node->is_leaf()) {
      SPW_CHECK(entry_of(word) != 0);
      below.has_dirty = (word & kDirty) != 0;
      ++count;
    } else {
      const PageNode* child = PageNode::child_in(word);
      check_node(child, shift - PageNode::kBits, was_root && i == 0, &below);
      count += child->state.load_acquire().is_live();
    }
    SPW_CHECK(!below.has_dirty || (node->tags.load_acquire() >> i & 1) != 0);
    counted->dead += below.dead;
    counted->has_dirty |= below.has_dirty;
  }
  SPW_CHECK(state.count() == count);
}

}  // namespace spw::files
