// The page index: the dirty blocks of one file, in the order of block numbers. A radix tree of 64-slot nodes with dirty
// tags that all threads read, fill and empty at the same time (ccXArray of ScaleCache, EuroSys '24, section 4). It
// serves what a hash table cannot: ranges, in order. Buffered files need of it what is declared here; entries that say
// something and the rest of the paper's interface (marked (lab) below) are lab/page_index/scalecache_index.h.
//
// Benefits: changes of different leaves share no cache line, and none waits for another. Memory is that of the blocks
//   that are dirty, not of all that ever were.
// Costs: a node is 576 bytes, so an index of blocks far apart costs as much for each; adjacent blocks share lines.
//
// The tree. A node with shift s chooses its slot by 6 bits of the index from bit s on; leaves have shift 0. The root is
// one word, {address of the node, height}: block i is in the tree only if i < 64^height. It grows by a new root whose
// slot 0 holds the old one; it never shrinks.
//
// A slot of a leaf. Who puts or takes something does it by a compare-and-swap; the winner's is what happened.
//
//      63       62          0
//     +-------+--------------+
//     | dirty |    entry     |   0: nothing. An entry is 1; in the lab whatever is not 0
//     +-------+--------------+
//
//   from           to              who   operation and order
//   0              entry           I     CAS acq_rel (dirty: seq_cst), with a reservation in the leaf, which becomes the entry's count
//   entry          0               E     CAS acq_rel (lab: dirty ones, too); then the leaf's count goes down by one
//   entry          other entry     any   CAS acq_rel: replace() (lab); keeps the dirty bit, which is the block's
//   entry, clean   dirty           any   CAS seq_cst: insert_dirty(), set_dirty() (lab)
//   entry, dirty   clean           S     CAS seq_cst: clear_dirty(), under the tag lock
//
// A slot of an inner node:
//
//   0              child           I     CAS seq_cst, with a reservation in the node, which becomes the child's count
//   child          0               any   CAS acq_rel; the child is UNLINKED
//
// The life of a node (page_node.h has the transitions of the state word).
//   1 To fill slots, reserve their node: count + 1 for each, only while LIVE.
//       Then CAS each slot. Who loses takes that reservation back.
//   2 To empty slots, CAS them to 0, then take as many from the node's count.
//   3 Whoever takes the last one, reservations included, tries {LIVE, 0} -> DEAD. The winner takes one from the
//     parent's count, and so on up along the nodes he came by. A root never dies.
//   4 Who inserts and meets a DEAD child reserves its parent, then revives the child
//     with a reservation of his in it. If the reservation fails since the node itself
//     is DEAD, he begins again at the root; on the way he meets it from above.
//   5 reclaim(): DEAD -> UNLINKED, CAS the parent's slot to 0 (who meets an UNLINKED child before does it for him),
//     take out what hangs below, and retire all of it. It is used again when no reader can be left (use_slots.h).
//
// Invariants:  count = entries, or LIVE children, + reservations            (at rest: no reservations)
//   hence      a LIVE node's parent is LIVE, up to the root
//              LIVE or DEAD => in the slot of its parent that its place asks for; a node has one parent in its life
//              DEAD, UNLINKED => all slots of a leaf are 0, and all children of an inner node are DEAD
//
// Why.
//   - A LIVE child is counted before it is LIVE (1, 4) and until it is so no longer (3), so its parent's count is not
//     0, and the parent cannot die. A reservation is counted as well, so a slot of a DEAD node is never filled.
//   - Nothing goes wrong with a compare-and-swap of 3 that comes late, after the node
//     has been filled and emptied again: what it needs is that the word is {LIVE, 0}
//     now. Each LIVE -> DEAD has one winner, who takes one from the parent.
//   - The parent on his path is the node's parent: he won, so the node was LIVE, so it was linked, and links of LIVE
//     nodes stay. Only a node that was the root when he came by may have become a child since. It has count 0 then and
//     stays LIVE, which breaks nothing; reclaim() makes the end of such nodes.
//   - What hangs below an UNLINKED node can be taken out without looking out for anybody: to revive a child one has to
//     reserve its parent, and no UNLINKED node can be reserved, nor is there a LIVE one below.
//   - A late helper of 5 cannot take a new child for the old one: he
//       is inside, so the old one's memory is not used again.
//   - A lookup (leaf_of()) looks at no state. If it came into a node that was then unlinked, it read the link at a time
//     when the node was there or the place was empty; what it misses was inserted after that, during its call.
//
// Dirty tags. A slot's dirty bit is exact: it comes and goes with the entry, and a new entry is clean or comes with it
// (insert_dirty()). Bit i of a node's tags says that slot i may be dirty, or something below it. (Were the leaf's tag
// bit the exact one, then whoever erases or inserts would have to clear it in a second step, and could in either order
// clear the tag of another thread's new entry.)
//   6 insert_dirty(), set_dirty(): the slot's bit, then the tag bits of the nodes above it, each where it is not set
//     yet; then it looks whether the root is the same, and if it has grown does it again for the new nodes.
//   7 Tag bits are cleared under the tag lock only: clear the bit, or several of one leaf; look at the slots, or at the
//     child's tags; set those again that have any. A new root starts with the bit of its child set.
// 6 and 7 are a store-load race in each level, all seq_cst: either the scanner sees the setter's bit below, or the
// setter sees the bit above cleared and sets it. So a scan finds every tag whose insert_dirty(), or set_dirty(), had
// returned when the scan began. Bits may be left over for nodes and entries that went; scans take them away.
//
// Threads: any, at any time, but for construction, destruction and check_invariants(), which want to be alone.
// Ordering: insert_dirty() and `still_dirty` of clear_dirty() order an owner's dirty bits of his own, if he sets these
//   by a seq_cst operation before that and reads them so.
// Lifetime: the pool of nodes and the use slots outlive it.
// Limits: blocks: all of uint64_t. reclaim() takes the time of a walk through all nodes; erasing calls it when more
//   than kDeadNodesMin nodes, and a quarter of those that the walk before left, are dead. So it costs a constant number
//   of nodes for each that is made or dies, on average.
//   An insertion begins again only when another thread has killed a node meanwhile.
#pragma once

#include <bit>
#include <cstdint>
#include <mutex>

#include "base/atomic.h"
#include "files/page_index/page_node.h"
#include "files/page_index/page_nodes.h"
#include "files/page_index/use_slots.h"

namespace spw::files {

class PageIndex {
 public:
  static constexpr unsigned kHeightMax = 11;  // 11 * 6 >= 64
  static constexpr uint64_t kDeadNodesMin = 64;

  struct Run {
    uint64_t first = 0;
    uint64_t count = 0;  // 0: there is none
  };

  explicit PageIndex(PageNodes& pool) : uses_(pool.uses()), pool_(pool) {}
  ~PageIndex();
  PageIndex(const PageIndex&) = delete;
  PageIndex& operator=(const PageIndex&) = delete;

  // The block is there then, and dirty. *dirtied: how often it became dirty by this, which is more than once if it was
  // cleared meanwhile. False: no memory.
  bool insert_dirty(uint64_t index, uint32_t* dirtied) { return insert_dirty(index, uint64_t{1}, dirtied); }
  // The same of [first, first + count), with one descent for each leaf.
  bool insert_dirty_run(uint64_t first, uint64_t count, uint32_t* dirtied);
  // Brings the place of a block near, for who is about to insert it.
  void prefetch(uint64_t index) const;
  // Makes all blocks of [first, first + count) clean. Behind a full fence it then calls still_dirty(index) of each that
  // it made so, and makes what is there dirty again if true. Scans wait meanwhile. `still_dirty` runs under the tag
  // lock. How many became clean by this; whoever sets one again meanwhile sees that it was clean.
  template <class StillDirty>
  uint64_t clear_dirty(uint64_t first, uint64_t count, StillDirty still_dirty);
  // Takes those of [first, first + count) out that are clean.
  void erase_clean(uint64_t first, uint64_t count);
  // The first dirty blocks in [from, last] that follow each other, at most `blocks_max`.
  Run next_dirty_run(uint64_t from, uint64_t last, uint64_t blocks_max);

  // Takes dead nodes out and gives those back that no reader can hold. Does nothing where it runs already.
  void reclaim();
  uint64_t dead_node_count() const;

  // SPW_CHECKs the invariants above.
  void check_invariants() const;

 protected:  // for lab/page_index, which does all of it that ScaleCache's does
  enum class Insertion : uint8_t { kInserted, kOccupied, kNoMemory };
  static constexpr uint64_t kDirty = uint64_t{1} << 63;
  static constexpr uint64_t kHeightMask = 63;
  static_assert(alignof(PageNode) > kHeightMask);

  // The nodes from a root, nodes[0], down to a leaf.
  struct Path {
    uint64_t root;
    unsigned height;
    PageNode* nodes[kHeightMax];

    explicit Path(uint64_t root_word)
        : root(root_word), height(height_of(root_word)), nodes{node_of(root_word)} {}
    PageNode* leaf() const { return nodes[height - 1]; }
  };
  using VisitEntry = bool (*)(void* context, uint64_t index, uint64_t entry);

  static uint64_t entry_of(uint64_t word) { return word & ~kDirty; }
  static PageNode* node_of(uint64_t root) { return reinterpret_cast<PageNode*>(root & ~kHeightMask); }
  static unsigned height_of(uint64_t root) { return static_cast<unsigned>(root & kHeightMask); }
  static uint64_t last_index_of(uint64_t root) {
    const unsigned height = height_of(root);
    return height == kHeightMax ? ~uint64_t{0} : (uint64_t{1} << (height * PageNode::kBits)) - 1;
  }
  static bool covers(uint64_t root, uint64_t index) { return root != 0 && index <= last_index_of(root); }

  // What is at the place of a leaf; nullptr: nothing. Of the state of nodes it sees nothing. Only inside.
  PageNode* leaf_of(uint64_t index) const {
    const uint64_t root = root_.load_acquire();
    if (!covers(root, index)) return nullptr;
    PageNode* node = node_of(root);
    for (unsigned shift = (height_of(root) - 1) * PageNode::kBits; shift != 0 && node != nullptr;
         shift -= PageNode::kBits)
      node = PageNode::child_in(node->slots[(index >> shift) % PageNode::kSlots].load_acquire());
    return node;
  }
  // The same with all nodes passed by. `path`: of the root as it is now.
  static bool descend(uint64_t index, Path* path);

  // Where there is no entry inserts this one, and makes what is there dirty, in one descent.
  bool insert_dirty(uint64_t index, uint64_t entry, uint32_t* dirtied);
  // Erases the entry if goes(the word of its slot). What was there and is erased, or 0.
  template <class Goes>
  uint64_t erase_where(uint64_t index, Goes goes);
  Insertion insert_from_the_root(uint64_t index, uint64_t entry);
  bool release(const Path& path, unsigned level, uint32_t counted = 1);
  void visit_present(uint64_t first, uint64_t last, VisitEntry visit, void* context) const;
  static void tag_above(const Path& path, uint64_t index);

 private:
  enum class Step : uint8_t { kDown, kFromTheRoot, kNoMemory };
  // Bit i of `slots`: slot i of the leaf, which is that of block `base` + i, is tagged, and asked for.
  using VisitDirty = bool (*)(void* context, PageNode& leaf, uint64_t base, uint64_t slots);

  static uint64_t last_of(uint64_t first, uint64_t count) {
    return count - 1 > ~first ? ~uint64_t{0} : first + (count - 1);
  }
  bool grow(uint64_t root, uint64_t index);
  Step step_down(uint64_t index, Path* path, unsigned level, bool* is_reserved);

  struct Swept {
    PageNode* batch = nullptr;  // linked by `next`
    uint64_t left = 0;
  };
  void reclaim_if_many_died();
  void sweep(Path* path, unsigned level, Swept* swept);
  void take_out(PageNode* node, Swept* swept);
  static void give_back(PageNode* node, PageNodes::Bundler* bundler);

  static bool visit_present(const PageNode* node, uint64_t base, uint64_t first, uint64_t last,
                            VisitEntry visit, void* context);
  bool put_dirty(const Path& path, uint64_t index, uint64_t entry, uint64_t* was);
  bool put_dirty_run(const Path& path, uint64_t slots, uint32_t* dirtied);
  bool insert_dirty_in_leaf(uint64_t first, uint64_t slots, uint32_t* dirtied);
  void erase_clean_in_leaf(uint64_t first, uint64_t last);
  static uint64_t slots_between(unsigned first, unsigned last) {
    return ~uint64_t{0} << first & ~uint64_t{0} >> (PageNode::kSlots - 1 - last);
  }
  static bool may_be_dirty(const PageNode* node, unsigned slot);
  static void take_away_tags(PageNode* node, uint64_t tags);
  static bool visit_dirty(PageNode* node, uint64_t base, uint64_t first, uint64_t last, VisitDirty visit,
                          void* context);
  void visit_dirty(uint64_t first, uint64_t last, VisitDirty visit, void* context);

  struct Counted {
    uint64_t dead = 0;
    bool has_dirty = false;
  };
  void check_node(const PageNode* node, unsigned shift, bool was_root, Counted* counted) const;

 protected:
  // Read by every operation, changed when the tree grows.
  alignas(64) Atomic<uint64_t> root_{0};
  UseSlots& uses_;

 private:
  PageNodes& pool_;
  // Changed when nodes die and come back. (Nodes that are made count
  // nothing here: with neighbours in a file all threads would do it.)
  alignas(64) Atomic<int64_t> dead_count_{
      0};                              // below 0 for a moment: a node is revived before its death was counted
  Atomic<uint64_t> left_by_sweep_{0};  // nodes
  std::mutex reclaim_mutex_;
  std::mutex tag_mutex_;
};

template <class StillDirty>
uint64_t PageIndex::clear_dirty(uint64_t first, uint64_t count, StillDirty still_dirty) {
  if (count == 0) return 0;
  struct Clearing {
    StillDirty& still_dirty;
    uint64_t cleared;
  } clearing{still_dirty, 0};
  visit_dirty(
      first, last_of(first, count),
      [](void* context, PageNode& leaf, uint64_t base, uint64_t slots) {
        auto* c = static_cast<Clearing*>(context);
        uint64_t cleared = 0;
        for (; slots != 0; slots &= slots - 1) {
          Atomic<uint64_t>& slot = leaf.slots[std::countr_zero(slots)];
          uint64_t word = slot.load_seq_cst();
          while ((word & kDirty) != 0 && !slot.cas_weak_seq_cst(word, entry_of(word))) {
          }
          if ((word & kDirty) != 0) cleared |= slots & -slots;
        }
        c->cleared += static_cast<uint64_t>(std::popcount(cleared));
        std::atomic_thread_fence(std::memory_order_seq_cst);
        for (; cleared != 0; cleared &= cleared - 1) {
          const auto i = static_cast<unsigned>(std::countr_zero(cleared));
          if (!c->still_dirty(base + i)) continue;
          // Whatever is there now: replace() (lab) may have given the block another entry.
          Atomic<uint64_t>& slot = leaf.slots[i];
          uint64_t word = slot.load_seq_cst();
          while (word != 0 && (word & kDirty) == 0)
            if (slot.cas_weak_seq_cst(word, word | kDirty)) {
              --c->cleared;
              break;
            }
        }
        return true;
      },
      &clearing);
  return clearing.cleared;
}

template <class Goes>
uint64_t PageIndex::erase_where(uint64_t index, Goes goes) {
  bool any_died;
  uint64_t word;
  {
    UseSlots::Guard inside(uses_);
    const uint64_t root = root_.load_acquire();
    if (!covers(root, index)) return 0;
    Path path(root);
    if (!descend(index, &path)) return 0;
    PageNode* leaf = path.leaf();
    Atomic<uint64_t>& slot = leaf->slots[leaf->slot_of(index)];
    word = slot.load_acquire();
    do {
      if (word == 0 || !goes(word)) return 0;
    } while (!slot.cas_weak_acq_rel(word, 0));
    any_died = release(path, path.height - 1);
  }
  if (any_died) reclaim_if_many_died();
  return entry_of(word);
}

}  // namespace spw::files
