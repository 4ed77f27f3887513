#include "durable/combining/line_cache.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace spw::durable {

LineCache::LineCache(uint32_t size, uint32_t capacity, LineFlusher& flusher)
    : flusher_(flusher), size_(size) {
  SPW_CHECK(size >= 1 && size <= capacity && capacity <= kCombinerSizeMax);
  nodes_.resize(size_t{capacity} + 1);
  table_.resize(std::bit_ceil(size_t{capacity} * 2));
  hash_shift_ = 64 - static_cast<unsigned>(std::countr_zero(table_.size()));
}

void LineCache::written_other(Line line) {
  SPW_DCHECK(line != kNoLine);
  newest_ = line;
  const NodeId last = oldest();
  if (nodes_[last].line == line) {
    newest_id_ = last;
    return;
  }
  const size_t mask = table_.size() - 1;
  size_t place = home_of(line);
  while (table_[place] != 0 && nodes_[table_[place]].line != line) place = (place + 1) & mask;
  if (const NodeId found = table_[place]; found != 0) {
    unlink(found);
    link_as_newest(found);
  } else if (held_ < size_) {
    const auto id = static_cast<NodeId>(++held_);
    table_[place] = id;
    nodes_[id].line = line;
    link_as_newest(id);
  } else {
    flush(last);
    // The one that left may have made room nearer to the line's home.
    place = home_of(line);
    while (table_[place] != 0) place = (place + 1) & mask;
    table_[place] = last;
    nodes_[last].line = line;
    newest_id_ = last;
  }
}

void LineCache::link_as_newest(NodeId id) {
  if (newest_id_ == 0) {
    nodes_[id].older = nodes_[id].newer = id;
  } else {
    const NodeId first = oldest();
    nodes_[id].older = newest_id_;
    nodes_[id].newer = first;
    nodes_[newest_id_].newer = id;
    nodes_[first].older = id;
  }
  newest_id_ = id;
}

// Not the newest, unless it is the only one.
void LineCache::unlink(NodeId id) {
  const Node& node = nodes_[id];
  nodes_[node.older].newer = node.newer;
  nodes_[node.newer].older = node.older;
  if (id == newest_id_) newest_id_ = 0;
}

// Out of the table; it is still in the ring.
void LineCache::flush(NodeId id) {
  empty_place(place_of(id));
  flusher_.flush(nodes_[id].line);
}

size_t LineCache::place_of(NodeId id) const {
  size_t place = home_of(nodes_[id].line);
  while (table_[place] != id) place = (place + 1) & (table_.size() - 1);
  return place;
}

// Moves up what stands behind, as far as it would not be found across the gap.
void LineCache::empty_place(size_t place) {
  const size_t mask = table_.size() - 1;
  for (size_t next = (place + 1) & mask; table_[next] != 0; next = (next + 1) & mask) {
    const size_t home = home_of(nodes_[table_[next]].line);
    const bool is_reached_past_gap = ((next - home) & mask) >= ((next - place) & mask);
    if (!is_reached_past_gap) continue;
    table_[place] = table_[next];
    place = next;
  }
  table_[place] = 0;
}

void LineCache::flush_all() {
  NodeId id = oldest();
  for (uint32_t left = held_; left > 0; --left, id = nodes_[id].newer) {
    // Places on the way may be empty by now: it is this one's own that ends the search.
    table_[place_of(id)] = 0;
    flusher_.flush(nodes_[id].line);
  }
  newest_id_ = 0;
  newest_ = kNoLine;
  held_ = 0;
}

void LineCache::resize(uint32_t size) {
  SPW_CHECK(size >= 1 && size <= capacity());
  size_ = size;
  while (held_ > size_) {
    const NodeId gap = oldest();
    flush(gap);
    unlink(gap);
    move_node(static_cast<NodeId>(held_--), gap);
  }
}

// So that the nodes in use are the first ones again.
void LineCache::move_node(NodeId from, NodeId to) {
  if (from == to) return;
  table_[place_of(from)] = to;
  const bool is_alone = nodes_[from].newer == from;
  nodes_[to] = nodes_[from];
  if (is_alone) nodes_[to].older = nodes_[to].newer = to;
  nodes_[nodes_[to].older].newer = to;
  nodes_[nodes_[to].newer].older = to;
  if (newest_id_ == from) newest_id_ = to;
}

void LineCache::check_invariants() const {
  SPW_CHECK(held_ <= size_ && size_ <= capacity());
  SPW_CHECK((held_ == 0) == (newest_id_ == 0) && nodes_[0].newer == 0 && nodes_[0].line == kNoLine);
  NodeId id = oldest(), before = newest_id_;
  for (uint32_t left = held_; left > 0; --left, before = id, id = nodes_[id].newer) {
    SPW_CHECK(id >= 1 && id <= held_ && nodes_[id].older == before);
    SPW_CHECK((id == newest_id_) == (left == 1));
    size_t place = home_of(nodes_[id].line);
    while (table_[place] != id) {
      SPW_CHECK(table_[place] != 0);
      place = (place + 1) & (table_.size() - 1);
    }
  }
  SPW_CHECK(static_cast<uint32_t>(std::count(table_.begin(), table_.end(), 0)) == table_.size() - held_);
  SPW_CHECK(newest_ == nodes_[newest_id_].line);
}

}  // namespace spw::durable
