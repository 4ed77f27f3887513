// The software cache of the paper (sections II-B and III-C): the lines
// written last, fully associative, least recently written out first.
//
// Nodes lie in an array and are linked into a ring by their numbers: what is newer than the newest line is the oldest
// one. So the oldest becomes the newest by naming it so, which is all that a loop over the lines held costs, and no
// more than the links when a new line takes its place. A hash table of node numbers with linear probing finds other
// lines' nodes; a line that leaves is taken out by moving up those behind it, so there are no tombstones. For 50 lines
// both together take a kilobyte, which stays in the processor's first cache.
//
// Invariants: held() <= size() <= capacity(); nodes 1 ... held() are in the ring and in the table,
//             each once, and no others are newest_id_ is 0 while nothing is held; node 0 is of no
//             line and stands for itself, so that it is nobody's oldest a node stands between its
//             line's home place and the next empty one; at most half of the places are taken
// Threads: one at a time. Memory: 16 bytes a line of the capacity and
// 4 to 8 of the table; no allocation after the first.
// Limits: capacity() <= kCombinerSizeMax
#pragma once

#include <cstdint>
#include <vector>

#include "durable/combining/write_combiner.h"

namespace spw::durable {

class LineCache {
 public:
  // 1 <= size <= capacity, in lines.
  LineCache(uint32_t size, uint32_t capacity, LineFlusher& flusher);

  // The line is the newest from now on. If it is not held and there is no room, the oldest one is flushed for it.
  void written(Line line) {
    if (line != newest_) written_other(line);
  }
  // All lines are flushed, the oldest first.
  void flush_all();
  // What no longer fits is flushed, the oldest first. 1 <= size <= capacity().
  void resize(uint32_t size);

  uint32_t held() const { return held_; }
  uint32_t size() const { return size_; }
  uint32_t capacity() const { return static_cast<uint32_t>(nodes_.size()) - 1; }
  void check_invariants() const;

 private:
  using NodeId = uint16_t;  // 0: none
  struct Node {
    Line line = kNoLine;
    NodeId newer = 0;
    NodeId older = 0;
  };

  size_t home_of(Line line) const { return line * uint64_t{0x9E3779B97F4A7C15u} >> hash_shift_; }
  void written_other(Line line);
  NodeId oldest() const { return nodes_[newest_id_].newer; }
  void link_as_newest(NodeId id);
  void unlink(NodeId id);
  void flush(NodeId id);
  void move_node(NodeId from, NodeId to);
  size_t place_of(NodeId id) const;
  void empty_place(size_t place);

  LineFlusher& flusher_;
  Line newest_ = kNoLine;  // the newest node's, at hand for runs of stores to one line
  NodeId newest_id_ = 0;
  uint32_t size_;
  uint32_t held_ = 0;
  unsigned hash_shift_;
  std::vector<Node> nodes_;
  std::vector<NodeId> table_;
};

}  // namespace spw::durable
