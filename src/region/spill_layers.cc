#include "region/spill_layers.h"

#include <algorithm>

#include "base/check.h"
#include "platform/time.h"
#include "store/space.h"
#include "telemetry/counters.h"

namespace spw::region {

SpillLayers::SpillLayers(store::Store& first, unsigned block_shift)
    : block_shift_(block_shift), first_(first) {}

SpillLayers::~SpillLayers() {
  for_each_layer([](Layer& layer) { delete &layer; });
  for (Layer* layer : left_) delete layer;
}

Status SpillLayers::allocate(NativeMemory& memory, uint64_t blocks) {
  memory_ = &memory;
  blocks_ = blocks;
  auto layer = make_layer(first_);
  if (!layer) return layer.status();
  top_.store_release(*layer);
  return {};
}

// Not the top one so far.
Result<SpillLayers::Layer*> SpillLayers::make_layer(store::Store& of) {
  auto* const free = std::find_if(std::begin(layers_), std::end(layers_),
                                  [](const auto& entry) { return entry.load_relaxed() == nullptr; });
  if (free == std::end(layers_))
    return Status::sentence(ENFILE, "too many forked processes share what was spilled before they began");
  auto layer = new_layer(of);
  if (!layer) return layer;
  free->store_release(*layer);  // pairs with for_each_layer()
  count_.fetch_add_relaxed(1);
  return layer;
}

Result<SpillLayers::Layer*> SpillLayers::new_layer(store::Store& of) {
  if (!left_.empty() && !left_.front()->keeps &&
      platform::monotonic_ns() - left_.front()->left_ns > 2 * kRetiredNs) {
    Layer* const layer = left_.front();
    left_.erase(left_.begin());
    layer->store = &of;
    layer->holes.set_store(of);
    layer->id = 0;
    layer->has_contents.store_relaxed(false);
    layer->is_ours.store_relaxed(true);
    return layer;
  }
  auto layer = std::make_unique<Layer>(of);
  if (Status s = layer->bits.allocate(*memory_, blocks_); !s) return s;
  if (Status s = layer->stale.allocate(*memory_, blocks_); !s) return s;
  return layer.release();
}

// ---- Lookups ----

cache::Backing SpillLayers::find_lower(const Layer& top, BlockId block) const {
  const Layer* found = &top;
  for_each_layer([&](const Layer& layer) {
    if (&layer != &top && layer.bits.test(block.value)) found = &layer;
  });
  return backing(*found, block, found != &top);
}

cache::Backing SpillLayers::place_for(BlockId block) {
  Layer* top = top_.load_acquire();
  if (!top->is_ours.load_acquire()) [[unlikely]]
    top = top_for_writes();
  if (top->stale.test(block.value)) [[unlikely]]
    top->stale.clear_range(block.value, 1);
  // Where there is no room, the write itself says so.
  if (Status no_room = top->store->reserve(offset(block), uint64_t{1} << block_shift_); !no_room)
    static_cast<void>(no_room);
  return backing(*top, block, top->bits.test(block.value));
}

void SpillLayers::raise_end(Layer& layer, uint64_t end) {
  uint64_t before = layer.end.load_relaxed();
  while (before < end && !layer.end.cas_strong_acq_rel(before, end)) {
  }
}

void SpillLayers::written_back(BlockId block, const store::Store* to) {
  telemetry::count(telemetry::Counter::spilled_blocks);
  Layer* written = top_.load_acquire();
  if (written->store != to) [[unlikely]] {
    written = nullptr;
    for_each_layer([&](Layer& layer) {
      if (layer.store == to) written = &layer;
    });
    SPW_CHECK(written != nullptr);  // a layer stays as long as something is being written to it
  }
  if (written->end.load_relaxed() <= block.value) raise_end(*written, block.value + 1);
  if (written->bits.set(block.value)) written->count.fetch_add_relaxed(1);
  if (!written->has_contents.load_relaxed()) written->has_contents.store_relaxed(true);
  if (count_.load_relaxed() == 1) return;
  for_each_layer([&](Layer& layer) {
    if (&layer == written || !layer.bits.test(block.value)) return;
    if (layer.bits.clear_range(block.value, 1) == 0) return;
    layer.count.fetch_sub_relaxed(1);
    layer.stale.set(block.value);
    layer.has_stale.store_release(true);
  });
}

uint64_t SpillLayers::blocks() const {
  int64_t blocks = 0;
  for_each_layer([&](const Layer& layer) { blocks += layer.count.load_relaxed(); });
  return static_cast<uint64_t>(std::max<int64_t>(blocks, 0));
}

// ---- Space given back ----

void SpillLayers::forget(BlockId first, uint64_t count, const SparseBits& live) {
  std::lock_guard lock(holes_mutex_);
  const Layer* const top = top_.load_relaxed();
  for_each_layer([&](Layer& layer) {
    const bool is_written_to = &layer == top && layer.is_ours.load_relaxed();
    layer.bits.for_each_run(first.value, count, [&](uint64_t block, uint64_t blocks) {
      // What is written meanwhile is forgotten by who asks again when nothing is being written.
      layer.count.fetch_sub_relaxed(static_cast<int64_t>(layer.bits.clear_range(block, blocks)));
      // The heap leaves a block out behind a large object, whose space is reserved with that of its neighbours.
      const uint64_t behind = block + blocks;
      if (offset(BlockId(behind)) < layer.store->size_bytes() && behind < blocks_ && !live.test(behind))
        ++blocks;
      if (is_written_to) return layer.holes.add(offset(BlockId(block)), blocks << block_shift_);
      raise_end(layer, block + blocks);
      layer.stale.set_range(block, blocks);
      layer.has_stale.store_release(true);
    });
  });
}

void SpillLayers::cancel_holes(BlockId first, uint64_t count) {
  std::lock_guard lock(holes_mutex_);
  top_.load_relaxed()->holes.cancel(offset(first), count << block_shift_);
}

void SpillLayers::flush_holes() {
  std::lock_guard lock(holes_mutex_);
  top_.load_relaxed()->holes.flush();
}

void SpillLayers::discard(Layer& layer, uint64_t first, uint64_t count) {
  give_back(*layer.store, offset(BlockId(first)), count << block_shift_);
}

// Of a layer that nobody writes to.
void SpillLayers::give_back_stale(Layer& layer) {
  if (!layer.has_stale.exchange_acquire(false)) return;
  layer.stale.for_each_run(0, layer.end.load_relaxed(), [&](uint64_t first, uint64_t count) {
    discard(layer, first, count);
    layer.stale.clear_range(first, count);
  });
}

void SpillLayers::give_back_all_but_contents(Layer& layer) {
  const uint64_t end =
      std::min(layer.end.load_relaxed() + (store::kReserveChunkBytes >> block_shift_), blocks_);
  uint64_t at = 0;
  layer.bits.for_each_run(0, end, [&](uint64_t first, uint64_t count) {
    if (first > at) discard(layer, at, first - at);
    at = first + count;
  });
  if (end > at) discard(layer, at, end - at);
  layer.stale.clear_range(0, layer.end.load_relaxed());
  layer.has_stale.store_relaxed(false);
}

// ---- Whose a layer is ----

void SpillLayers::take_back(Layer& layer) {
  uses_->end_use(layer.id);
  layer.id = 0;
  layer.is_ours.store_release(true);
}

// What is pending in the one before is given back first.
void SpillLayers::set_top(Layer& layer) {
  Layer* const before = top_.load_relaxed();
  if (before == &layer) return;
  layer.is_quiet = false;
  layer.reserves = true;
  std::lock_guard lock(holes_mutex_);
  if (before->is_ours.load_relaxed()) before->holes.flush();
  top_.store_release(&layer);
}

// Without a wait: what has stale space is left to look().
SpillLayers::Layer* SpillLayers::top_for_writes() {
  std::lock_guard lock(mutex_);
  Layer* found = top_.load_relaxed()->is_ours.load_relaxed() ? top_.load_relaxed() : nullptr;
  for_each_layer([&](Layer& layer) {
    if (found == nullptr && !layer.has_stale.load_acquire() && is_unused(layer)) take_back(layer);
    if (found == nullptr && layer.is_ours.load_relaxed()) found = &layer;
  });
  if (found == nullptr) return open_top();
  set_top(*found);
  return found;
}

SpillLayers::Layer* SpillLayers::open_top() {
  auto store = at_forks_.open ? at_forks_.open() : Status(EBUSY, "no store to open");
  if (store && (*store)->size_bytes() < first_.size_bytes())
    store = Status::sentence(
        EFBIG, "a second store is smaller than the first one was: has a limit of file sizes changed?");
  Result<Layer*> layer = store ? make_layer(**store) : store.status();
  if (!layer) {
    at_forks_.fatal(layer.status());
    return top_.load_relaxed();  // tests
  }
  (*layer)->keeps = std::move(*store);
  Layer* const before = top_.load_relaxed();
  set_top(**layer);
  if (before->id == 0 && !before->has_contents.load_relaxed()) leave(*before);  // its parent's
  return *layer;
}

// It has nothing for this process, and what it was asked for is long over.
void SpillLayers::leave(Layer& layer) {
  for (Atomic<Layer*>& entry : layers_)
    if (entry.load_relaxed() == &layer) entry.store_release(nullptr);
  count_.fetch_sub_relaxed(1);
  if (layer.id != 0 && uses_) uses_->end_use(layer.id);
  clear(layer);
  layer.left_ns = platform::monotonic_ns();
  left_.push_back(&layer);
}

void SpillLayers::clear(Layer& layer) {
  layer.bits.clear_range(0, layer.end.load_relaxed());
  layer.stale.clear_range(0, layer.end.load_relaxed());
  layer.count.store_relaxed(0);
  layer.has_contents.store_relaxed(false);
}

bool SpillLayers::expect_quiet() {
  if (count_.load_relaxed() == 1 && left_.empty() && top_.load_relaxed()->is_ours.load_relaxed())
    return false;
  std::lock_guard lock(mutex_);
  for_each_layer(
      [&](Layer& layer) { layer.is_quiet = &layer != top_.load_relaxed() || !layer.is_ours.load_relaxed(); });
  return true;
}

bool SpillLayers::look(std::vector<std::unique_ptr<store::Store>>* closed) {
  std::lock_guard lock(mutex_);
  for_each_layer([this](Layer& layer) {
    if (layer.is_quiet) see_to(layer);
  });
  const uint64_t now_ns = platform::monotonic_ns();
  for (Layer* layer : left_)
    if (layer->keeps && now_ns - layer->left_ns > kRetiredNs) closed->push_back(std::move(layer->keeps));
  return count_.load_relaxed() > kLayersWanted;
}

// The very first one is written to rather than another one.
void SpillLayers::see_to(Layer& layer) {
  if (is_unused(layer)) {
    give_back_stale(layer);
    take_back(layer);
    if (layer.store == &first_ || !top_.load_relaxed()->is_ours.load_relaxed()) return set_top(layer);
  }
  if (&layer == top_.load_relaxed()) return;
  if (layer.store != &first_ && is_empty(layer)) return leave(layer);
  if (!layer.is_ours.load_relaxed()) return;
  if (layer.reserves) give_back_all_but_contents(layer);
  layer.reserves = false;
  give_back_stale(layer);
}

std::vector<cache::BlockRun> SpillLayers::to_be_moved(uint64_t most) {
  std::lock_guard lock(mutex_);
  const Layer* least = nullptr;
  for_each_layer([&](const Layer& layer) {
    if (&layer == top_.load_relaxed() || is_empty(layer)) return;
    if (least == nullptr || layer.count.load_relaxed() < least->count.load_relaxed()) least = &layer;
  });
  std::vector<cache::BlockRun> runs;
  if (least == nullptr) return runs;
  least->bits.for_each_run(0, least->end.load_relaxed(), [&](uint64_t first, uint64_t count) {
    if (most == 0) return;
    runs.push_back({BlockId(first), std::min(count, most)});
    most -= runs.back().count;
  });
  return runs;
}

// ---- Forks ----

// What cannot be locked is never taken back.
void SpillLayers::share(Layer& layer) {
  std::lock_guard lock(holes_mutex_);
  layer.holes.take_all([&](uint64_t begin, uint64_t end) {
    layer.stale.set_range(begin >> block_shift_, (end - begin) >> block_shift_);
    layer.has_stale.store_relaxed(true);
  });
  if (layer.id == 0 && uses_) {
    layer.id = uses_->new_id();
    if (!uses_->use(layer.id)) layer.id = 0;
  }
  layer.is_ours.store_release(false);
}

void SpillLayers::lock_for_fork(bool are_shared) {
  mutex_.lock();
  is_sharing_ = are_shared;
  if (!are_shared) return;
  if (!uses_)
    if (auto made = platform::UseLocks::create()) uses_ = std::move(*made);
  for_each_layer([this](Layer& layer) {
    if (!layer.is_ours.load_relaxed() || !layer.has_contents.load_relaxed()) return;
    if (count_.load_relaxed() > 1 && layer.bits.count_set(0, layer.end.load_relaxed()) == 0)
      layer.has_contents.store_relaxed(false);
    else
      share(layer);
  });
  if (uses_)
    if (auto made = uses_->for_child()) child_uses_ = std::move(*made);
  for_each_layer([](Layer& layer) { layer.store->lock_for_fork(); });
}

// Without locks of the child's, neither side ever takes back what they share.
void SpillLayers::never_take_back() {
  for_each_layer([](Layer& layer) {
    if (!layer.is_ours.load_relaxed()) layer.id = 0;
  });
}

void SpillLayers::unlock_after_fork() {
  if (is_sharing_) for_each_layer([](Layer& layer) { layer.store->unlock_after_fork(); });
  if (is_sharing_ && !child_uses_) never_take_back();
  child_uses_.reset();
  mutex_.unlock();
}

// A layer that had nothing at the fork is its parent's alone.
void SpillLayers::in_child() {
  if (child_uses_)
    uses_->become(std::move(*child_uses_));
  else
    never_take_back();
  child_uses_.reset();
  for_each_layer([](Layer& layer) {
    if (layer.is_ours.load_relaxed()) {
      layer.holes.take_all([](uint64_t, uint64_t) {});
      clear(layer);
    }
    layer.is_ours.store_relaxed(false);
    layer.count.store_relaxed(static_cast<int64_t>(layer.bits.count_set(0, layer.end.load_relaxed())));
    layer.store->in_child();
  });
  mutex_.unlock();
}

void SpillLayers::check_invariants() const {
  uint32_t layers = 0;
  for_each_layer([&](const Layer& layer) {
    ++layers;
    layer.holes.check_invariants();
    SPW_CHECK(layer.count.load_relaxed() ==
              static_cast<int64_t>(layer.bits.count_set(0, layer.end.load_relaxed())));
    layer.bits.for_each_run(0, blocks_, [&](uint64_t first, uint64_t count) {
      SPW_CHECK(layer.stale.count_set(first, count) == 0);
      for_each_layer([&](const Layer& other) {
        SPW_CHECK(&other == &layer || other.bits.count_set(first, count) == 0);
      });
    });
  });
  SPW_CHECK(layers == count_.load_relaxed());
}

}  // namespace spw::region
