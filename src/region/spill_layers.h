// Where on the spill store a block's contents are: in one of a few layers, each of which is a store of its own with
// room for every block at its identity offset. A process begins with one, and most never have another.
//
// A fork shares the layers there are: neither side writes to one, or gives space of it back, for as long as the other
// may read it (UseLocks says so, however a process ends). What a side writes meanwhile goes to a layer of its own,
// which it opens when it first has something to write. A layer that nobody else uses any more is written to again.
//
//   ours    nobody else reads it. Written to if it is the top one; space of blocks that have left it is given back
//   shared  (from a fork on, until who uses it is looked up again) nothing of it changes
// Invariants
//   a block's newest contents are in at most one layer, whose bit says so: written_back() takes the bit away elsewhere
//   stale(b) in a layer => it may hold space for b, and its bit for b is 0; given back once the layer is ours. What it
//   has reserved beside is given back when it is ours and no longer written to
//   exactly one layer is the top one, if only for its name; it is written to only while it is ours
// Why a child reads what its parent had at the fork: what is dirty then is in the child's memory (its pages, copied by
//   the kernel; access/mapped), so it reads a layer only for what was clean, whose write was over. Every write that
//   begins later is to another layer: place_for() comes after the fork, and finds no layer ours.
// Threads: find(), place_for(), written_back() any, lock-free while the top layer is ours; the rest one at a time (the
//   region map's lock). A block's bits change only while nobody looks that block up: it is in memory then, or no
//   longer live.
// Lifetime: the first store outlives this; the store of a layer that was emptied is kept for kRetiredNs, since
//   somebody may still be reading ahead there what was freed meanwhile.
// Limits: kLayersMax. Above kLayersWanted to_be_moved() says which blocks should be written anew to make it fewer;
//   above kLayersHigh nobody should fork before that is done.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/atomic.h"
#include "cache/cache.h"
#include "platform/use_locks.h"
#include "region/hole_list.h"
#include "region/native_memory.h"
#include "region/sparse_bits.h"
#include "store/store.h"

namespace spw::region {

class SpillLayers {
 public:
  static constexpr uint32_t kLayersMax = 64;
  static constexpr uint32_t kLayersHigh = 24;
  static constexpr uint32_t kLayersWanted = 4;
  static constexpr uint64_t kRetiredNs = 10'000'000'000;

  struct AtForks {
    // Another store, as large as the first.
    std::function<Result<std::unique_ptr<store::Store>>()> open;
    // There is no layer to write to. Does not return.
    void (*fatal)(const Status&) = nullptr;
  };

  SpillLayers(store::Store& first, unsigned block_shift);
  ~SpillLayers();
  Status allocate(NativeMemory& memory, uint64_t blocks);
  // What comes of forks; without it there must be none. Before the first.
  void prepare(AtForks at_forks) { at_forks_ = std::move(at_forks); }

  // Never written: a store, without contents.
  cache::Backing find(BlockId block) const {
    const Layer& top = *top_.load_acquire();
    if (top.bits.test(block.value)) return backing(top, block, true);
    // Another one may have become the top one, and this one gone, since it was looked up.
    if (count_.load_acquire() == 1 && top_.load_acquire() == &top) return backing(top, block, false);
    return find_lower(top, block);
  }
  // Where to write the block, with its space reserved where that can be.
  cache::Backing place_for(BlockId block);
  // To where place_for() said.
  void written_back(BlockId block, const store::Store* to);

  // The blocks are no longer what they were; none is in use. Their space is given back now or later. `is_live`: of
  // blocks behind a run.
  void forget(BlockId first, uint64_t count, const SparseBits& live);
  // They are in use anew: what was to be given back stays.
  void cancel_holes(BlockId first, uint64_t count);
  void flush_holes();
  template <class Visit>
  void for_each_run(uint64_t first, uint64_t count, Visit visit) const;

  // Around a fork: before it, when no block leaves memory any more, and after it in the parent and in the child. In
  // between nobody opens or takes back a layer, and every block that is written is in the child's memory.
  void lock_for_fork(bool are_shared = true);
  void unlock_after_fork();
  void in_child();

  // Now and then, in two steps. expect_quiet(): whether there is anything to see to. Then, when every write has ended
  // that had begun before it, look(): layers that nobody else uses any more are taken back, space that those hold
  // which are no longer written to is given back, and empty ones go. True: there are more than wanted. `closed`:
  // stores that are not needed any more; the cache should forget them before they go.
  bool expect_quiet();
  bool look(std::vector<std::unique_ptr<store::Store>>* closed);
  // Up to `most` blocks of the layer that should go.
  std::vector<cache::BlockRun> to_be_moved(uint64_t most);
  uint32_t count() const { return count_.load_relaxed(); }
  // That have contents here; or soon.
  uint64_t blocks() const;
  void check_invariants() const;

 private:
  struct Layer {
    explicit Layer(store::Store& of) : store(&of), holes(of) {}
    store::Store* store;
    std::unique_ptr<store::Store> keeps;  // but for the first one
    SparseBits bits;
    SparseBits stale;
    HoleList holes;
    uint64_t id = 0;  // of its use lock, from the first fork on
    Atomic<bool> is_ours{true};
    Atomic<int64_t> count{0};          // of bits, or soon
    Atomic<uint64_t> end{0};           // no bit behind it was ever set, in either
    Atomic<bool> has_contents{false};  // or had
    Atomic<bool> has_stale{false};     // or had
    bool reserves = false;             // space, since it is, or was, the top one
    bool is_quiet = false;             // since expect_quiet(), nobody could begin to write to it
    uint64_t left_ns = 0;
  };

  uint64_t offset(BlockId block) const { return block.value << block_shift_; }
  cache::Backing backing(const Layer& layer, BlockId block, bool has_contents) const {
    return {layer.store, offset(block), has_contents};
  }
  cache::Backing find_lower(const Layer& top, BlockId block) const;
  template <class Visit>
  void for_each_layer(Visit visit) const;
  Result<Layer*> make_layer(store::Store& of);
  Result<Layer*> new_layer(store::Store& of);
  Layer* top_for_writes();
  Layer* open_top();
  bool is_unused(const Layer& layer) const {
    return !layer.is_ours.load_relaxed() && layer.id != 0 && uses_ && uses_->is_only_user(layer.id);
  }
  void take_back(Layer& layer);
  void set_top(Layer& layer);
  void see_to(Layer& layer);
  void give_back_stale(Layer& layer);
  void give_back_all_but_contents(Layer& layer);
  void discard(Layer& layer, uint64_t first, uint64_t count);
  void leave(Layer& layer);
  static bool is_empty(const Layer& layer) { return layer.count.load_relaxed() == 0; }
  static void clear(Layer& layer);
  static void raise_end(Layer& layer, uint64_t end);
  void share(Layer& layer);
  void never_take_back();

  const unsigned block_shift_;
  NativeMemory* memory_ = nullptr;
  uint64_t blocks_ = 0;
  AtForks at_forks_;
  store::Store& first_;
  Atomic<Layer*> layers_[kLayersMax] = {};
  Atomic<uint32_t> count_{0};
  Atomic<Layer*> top_{nullptr};
  std::mutex mutex_;        // which layers there are, and whose they are
  std::mutex holes_mutex_;  // the layers' lists of holes; taken last
  std::vector<Layer*>
      left_;  // the first for the longest time; used again, since somebody may be looking into one
  std::optional<platform::UseLocks> uses_;
  std::optional<platform::UseLocks> child_uses_;  // during a fork
  bool is_sharing_ = false;                       // likewise
};

template <class Visit>
void SpillLayers::for_each_layer(Visit visit) const {
  for (const Atomic<Layer*>& entry : layers_)
    if (Layer* layer = entry.load_acquire()) visit(*layer);
}

template <class Visit>
void SpillLayers::for_each_run(uint64_t first, uint64_t count, Visit visit) const {
  for_each_layer([&](const Layer& layer) { layer.bits.for_each_run(first, count, visit); });
}

}  // namespace spw::region
