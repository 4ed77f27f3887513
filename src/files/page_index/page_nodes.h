// Memory for the nodes of page indexes: taken and given back without
// a lock, and used again only when no reader can be left.
//
// Nodes come in slabs. Free ones stand in kStacks stacks, one for each so-manieth thread, and, those that became free
// many at once, in bundles of up to kBundleNodes on a stack of bundles. A thread whose own stack is empty takes a
// bundle, which costs one operation on what all share for many nodes; then a few nodes of another thread's stack; then
// it maps a slab. The heads of the stacks carry a tag against ABA.
//
// Invariants:  a free node's slots and tags are 0
//              nodes_mapped = nodes in indexes + retired nodes + free nodes
// Threads: any. retire() has a lock of its own, which only reclaiming takes.
// Ordering: a push releases the node, a pop acquires it. A pop may read `next` of nodes that another thread has popped
//   just now: what it says, if any node, is a node in some slab, and is not used, since the tag has changed.
// Lifetime: outlives the indexes; everything is unmapped at the end.
// Limits: slabs stay mapped until the end, so memory is that of the most nodes there ever were. Beyond these it is at
//   most an eighth, or kSlabBytesMin, for each thread that runs out of nodes at the same moment. Addresses below 2^48.
//   A tag wraps around after 2^22 pops: a thread that sleeps inside a pop for exactly a multiple of it would be misled.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/atomic.h"
#include "files/page_index/page_node.h"
#include "files/page_index/use_slots.h"
#include "platform/memory.h"

namespace spw::files {

class PageNodes {
 public:
  static constexpr uint32_t kStacks = 8;
  static constexpr uint32_t kBundleNodes = 64;
  static constexpr uint32_t kTakenOver = 8;
  static constexpr uint64_t kSlabBytesMin = 64 << 10;
  static constexpr uint64_t kSlabBytesMax = 2 << 20;

  // take() maps no more than `bytes_max`.
  explicit PageNodes(UseSlots& uses, uint64_t bytes_max = UINT64_MAX) : uses_(uses), bytes_max_(bytes_max) {}
  ~PageNodes();
  PageNodes(const PageNodes&) = delete;
  PageNodes& operator=(const PageNodes&) = delete;

  UseSlots& uses() { return uses_; }

  // All zeros but for `shift`; nullptr when there is no memory.
  PageNode* take(unsigned shift);
  // A node that no other thread can have seen, with its slots at 0.
  void put(PageNode* node);
  // `first` and those that follow by `next` can be reached by nobody who comes now. Frees what can be freed of all that
  // was retired.
  void retire(PageNode* first);
  void free_retired();

  // Gives many nodes back, as put(); the last ones at its end.
  class Bundler {
   public:
    explicit Bundler(PageNodes& pool) : pool_(pool) {}
    ~Bundler() { flush(); }
    Bundler(const Bundler&) = delete;
    Bundler& operator=(const Bundler&) = delete;
    void add(PageNode* node);

   private:
    void flush();

    PageNodes& pool_;
    PageNode* first_ = nullptr;
    PageNode* last_ = nullptr;
    uint32_t count_ = 0;
  };

  uint64_t mapped_bytes() const { return mapped_bytes_.load_relaxed(); }
  uint64_t retired_count() const { return retired_count_.load_relaxed(); }
  // For tests: take() fails once, after `successes` that succeed.
  void fail_take_after(int64_t successes) { takes_until_failure_.store_relaxed(successes); }

 private:
  // Stands at the beginning of its own memory.
  struct Slab {
    Slab* next;
    platform::Mapping memory;
  };
  // Linked by `kNext`. The head: address / 64 in the low bits, the tag in the high ones.
  template <Atomic<PageNode*> PageNode::* kNext>
  struct alignas(64) Stack {
    static constexpr unsigned kTagShift = 42;
    static constexpr unsigned kAddressShift = 6;
    static constexpr uint64_t kAddressMask = (uint64_t{1} << kTagShift) - 1;
    Atomic<uint64_t> head;

    // Up to `count_max` of them, linked from the first to `last`; nullptr: it is empty.
    PageNode* pop(uint32_t count_max, PageNode** last);
    void push(PageNode* first, PageNode* last);

   private:
    static PageNode* node_in(uint64_t word) {
      return reinterpret_cast<PageNode*>((word & kAddressMask) << kAddressShift);
    }
  };
  using NodeStack = Stack<&PageNode::next>;
  using BundleStack = Stack<&PageNode::next_bundle>;

  bool fails_for_test();
  PageNode* take_from_new_slab();
  NodeStack& own_stack() { return stacks_[uses_.thread_number() % kStacks]; }

  UseSlots& uses_;
  const uint64_t bytes_max_;
  NodeStack stacks_[kStacks];
  BundleStack bundles_;
  Atomic<Slab*> slabs_;
  Atomic<uint64_t> mapped_bytes_;
  Atomic<int64_t> takes_until_failure_{-1};

  std::mutex retired_mutex_;  // the list, in the order of epochs
  PageNode* retired_first_ = nullptr;
  PageNode* retired_last_ = nullptr;  // meaningless while there is no first
  Atomic<uint64_t> retired_count_;
};

}  // namespace spw::files
