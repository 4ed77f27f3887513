#include "files/page_index/page_nodes.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/units.h"

namespace spw::files {

PageNodes::~PageNodes() {
  for (Slab* slab = slabs_.load_acquire(); slab != nullptr;) {
    Slab* next = slab->next;
    platform::Mapping unmapped_here = std::move(slab->memory);
    slab = next;
  }
}

namespace {

// Free nodes lie anywhere: of what is taken next the first lines come
// meanwhile. Whoever fills the rest of it goes through it in order.
void prefetch(const PageNode* node) {
  if (node == nullptr) return;
  __builtin_prefetch(node, 1);
  __builtin_prefetch(node->slots, 1);
}

}  // namespace

template <Atomic<PageNode*> PageNode::* kNext>
PageNode* PageNodes::Stack<kNext>::pop(uint32_t count_max, PageNode** last) {
  for (;;) {
    uint64_t seen =
        head.load_acquire();  // each time: a failed attempt has acquired nothing, and the links are read below
    PageNode* first = node_in(seen);
    if (first == nullptr) return nullptr;
    *last = first;
    PageNode* next = (first->*kNext).load_relaxed();
    for (uint32_t i = 1; i < count_max && next != nullptr; ++i) {
      *last = next;
      next = (next->*kNext).load_relaxed();
    }
    const uint64_t tag = (seen >> kTagShift) + 1;
    if (!head.cas_weak_acquire(seen, tag << kTagShift | reinterpret_cast<uint64_t>(next) >> kAddressShift))
      continue;
    prefetch(next);
    return first;
  }
}

template <Atomic<PageNode*> PageNode::* kNext>
void PageNodes::Stack<kNext>::push(PageNode* first, PageNode* last) {
  uint64_t seen = head.load_relaxed();
  do {
    (last->*kNext).store_relaxed(node_in(seen));
  } while (!head.cas_weak_release(seen, (seen & ~kAddressMask) | first->as_word() >> kAddressShift));
}

PageNode* PageNodes::take(unsigned shift) {
  if (takes_until_failure_.load_relaxed() >= 0 && fails_for_test()) [[unlikely]]
    return nullptr;
  NodeStack& own = own_stack();
  PageNode* last = nullptr;
  PageNode* node = own.pop(1, &last);
  if (node == nullptr) {
    node = bundles_.pop(1, &last);
    if (node != nullptr) last = node->bundle_last;
    for (uint32_t i = 0; node == nullptr && i < kStacks; ++i) node = stacks_[i].pop(kTakenOver, &last);
    if (node != nullptr && last != node) own.push(node->next.load_relaxed(), last);
  }
  if (node == nullptr) node = take_from_new_slab();
  if (node != nullptr) node->shift = shift;
  return node;
}

void PageNodes::put(PageNode* node) { own_stack().push(node, node); }

bool PageNodes::fails_for_test() { return takes_until_failure_.fetch_sub_relaxed(1) == 0; }

PageNode* PageNodes::take_from_new_slab() {
  constexpr uint64_t kNodesAt = 64;
  static_assert(sizeof(Slab) <= kNodesAt);
  const uint64_t bytes =
      std::clamp(round_up(mapped_bytes() / 8, kMmuPageBytes), kSlabBytesMin, kSlabBytesMax);
  if (mapped_bytes() + bytes > bytes_max_) return nullptr;
  auto mapping = platform::map_anonymous(bytes);
  if (!mapping) return nullptr;
  std::byte* memory = mapping->data();
  SPW_CHECK(
      (reinterpret_cast<uint64_t>(memory) + bytes) >> (NodeStack::kTagShift + NodeStack::kAddressShift) == 0);
  const uint64_t count = (bytes - kNodesAt) / sizeof(PageNode);
  {
    Bundler bundler(*this);
    for (uint64_t i = 1; i < count; ++i) bundler.add(new (memory + kNodesAt + i * sizeof(PageNode)) PageNode);
  }
  auto* slab = new (memory) Slab{slabs_.load_relaxed(), std::move(*mapping)};
  while (!slabs_.cas_weak_release(slab->next, slab)) {
  }
  mapped_bytes_.fetch_add_relaxed(bytes);
  return new (memory + kNodesAt) PageNode;
}

void PageNodes::Bundler::add(PageNode* node) {
  node->next.store_relaxed(first_);
  first_ = node;
  if (last_ == nullptr) last_ = node;
  if (++count_ == kBundleNodes) flush();
}

void PageNodes::Bundler::flush() {
  if (first_ == nullptr) return;
  first_->bundle_last = last_;
  pool_.bundles_.push(first_, first_);
  first_ = last_ = nullptr;
  count_ = 0;
}

void PageNodes::retire(PageNode* first) {
  {
    std::lock_guard lock(retired_mutex_);
    const uint64_t epoch = uses_.advance();  // under the lock, so that the list is in the order of epochs
    for (PageNode *node = first, *next; node != nullptr; node = next) {
      next = node->next.load_relaxed();
      node->next.store_relaxed(nullptr);
      node->retired_epoch = epoch;
      if (retired_first_ == nullptr)
        retired_first_ = node;
      else
        retired_last_->next.store_relaxed(node);
      retired_last_ = node;
      retired_count_.fetch_add_relaxed(1);
    }
  }
  free_retired();
}

void PageNodes::free_retired() {
  const uint64_t oldest = uses_.oldest_in_use();
  Bundler bundler(*this);
  std::lock_guard lock(retired_mutex_);
  while (retired_first_ != nullptr && retired_first_->retired_epoch < oldest) {
    PageNode* node = std::exchange(retired_first_, retired_first_->next.load_relaxed());
    node->tags.store_relaxed(0);  // whoever still set some was inside, and has left
    bundler.add(node);
    retired_count_.fetch_sub_relaxed(1);
  }
}

}  // namespace spw::files
