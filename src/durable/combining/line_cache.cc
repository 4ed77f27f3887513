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
  const size_t mask = table_.size() - 1;
  size_t place = home_of(line);
  while (table_[place] != 0 && nodes_[table_[place]].line != line) place = (place + 1) & mask;
  NodeId id = table_[place];
  if (id != 0) {
    unlink(id);
  } else if (held_ < size_) {
    id = static_cast<NodeId>(++held_);
    table_[place] = id;
  } else {
    id = flush_oldest();
    // The one that left may have made room nearer to the line's home.
    place = home_of(line);
    while (table_[place] != 0) place = (place + 1) & mask;
    table_[place] = id;
  }
  nodes_[id].line = line;
  link_as_newest(id);
  newest_ = line;
}

void LineCache::link_as_newest(NodeId id) {
  const NodeId before = nodes_[0].older;
  nodes_[id].older = before;
  nodes_[id].newer = 0;
  nodes_[before].newer = id;
  nodes_[0].older = id;
}

void LineCache::unlink(NodeId id) {
  const Node& node = nodes_[id];
  nodes_[node.older].newer = node.newer;
  nodes_[node.newer].older = node.older;
}

// Out of the ring and the table; the node is the caller's, who either fills it again or makes it the last of those in use.
LineCache::NodeId LineCache::flush_oldest() {
  const NodeId id = nodes_[0].newer;
  const Line line = nodes_[id].line;
  size_t place = home_of(line);
  while (table_[place] != id) place = (place + 1) & (table_.size() - 1);
  empty_place(place);
  unlink(id);
  flusher_.flush(line);
  return id;
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
  const size_t mask = table_.size() - 1;
  for (NodeId id = nodes_[0].newer; id != 0; id = nodes_[id].newer) {
    // Places on the way may be empty by now: it is this one's own that ends the search.
    size_t place = home_of(nodes_[id].line);
    while (table_[place] != id) place = (place + 1) & mask;
    table_[place] = 0;
    flusher_.flush(nodes_[id].line);
  }
  nodes_[0] = Node{};
  newest_ = kNoLine;
  held_ = 0;
}

void LineCache::resize(uint32_t size) {
  SPW_CHECK(size >= 1 && size <= capacity());
  size_ = size;
  while (held_ > size_) {
    const NodeId gap = flush_oldest();
    const NodeId last = static_cast<NodeId>(held_--);
    if (gap == last) continue;
    // The last node moves into the gap, so that those in use are the first ones again.
    size_t place = home_of(nodes_[last].line);
    while (table_[place] != last) place = (place + 1) & (table_.size() - 1);
    table_[place] = gap;
    nodes_[gap] = nodes_[last];
    nodes_[nodes_[gap].older].newer = gap;
    nodes_[nodes_[gap].newer].older = gap;
  }
}

void LineCache::check_invariants() const {
  SPW_CHECK(held_ <= size_ && size_ <= capacity());
  uint32_t linked = 0;
  for (NodeId id = nodes_[0].newer, before = 0; id != 0; before = id, id = nodes_[id].newer) {
    SPW_CHECK(id <= held_ && nodes_[id].older == before && ++linked <= held_);
    size_t place = home_of(nodes_[id].line);
    while (table_[place] != id) {
      SPW_CHECK(table_[place] != 0);
      place = (place + 1) & (table_.size() - 1);
    }
  }
  SPW_CHECK(linked == held_);
  SPW_CHECK(static_cast<uint32_t>(std::count(table_.begin(), table_.end(), 0)) == table_.size() - held_);
  SPW_CHECK(newest_ == (held_ == 0 ? kNoLine : nodes_[nodes_[0].older].line));
}

}  // namespace spw::durable
