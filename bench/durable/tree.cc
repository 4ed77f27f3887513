// Insertions into a B+-tree, hundreds of stores a section, as of a
// database's transactions (the paper's mdb: 652 on average).
//
// Keys are readings: a sensor's number and a time. A section inserts a dozen of one sensor, whose place is amid those
// of other sensors; so the same leaf is changed a dozen times, each time by moving what stands behind the place up by
// one. A node is 16 lines: its header and 62 keys, then as many values.
// size: sections. rounds: trees.
#include <array>
#include <iterator>
#include <vector>

#include "durable/workload.h"

namespace spw::bench {

namespace {

constexpr uint32_t kKeysMax = 62;
constexpr uint64_t kReadings = 12;
constexpr uint64_t kSensors = 1000;

struct alignas(64) Node {
  uint32_t count;
  uint32_t is_leaf;
  Node* next;                // of a leaf
  uint64_t keys[kKeysMax];   // rising; of a child the smallest below it, or less
  uint64_t below[kKeysMax];  // values, or children

  Node* child(uint32_t i) const { return reinterpret_cast<Node*>(below[i]); }
  // The last one that is at most `key`; the first child takes what is less.
  uint32_t child_for(uint64_t key) const {
    uint32_t i = count - 1;
    while (i > 0 && keys[i] > key) --i;
    return i;
  }
};
static_assert(sizeof(Node) == 1024);

struct alignas(64) Root {
  Node* node;
  uint64_t keys;
};

class Tree {
 public:
  explicit Tree(Run& run) : run_(run), root_(*run.allocate<Root>()) {
    Section section;
    store(root_.node, new_node(true));
    store(root_.keys, uint64_t{0});
  }

  // The key is new.
  void insert(uint64_t key, uint64_t value) {
    if (root_.node->count == kKeysMax) {
      Node* above = new_node(false);
      put(*above, 0, 0, reinterpret_cast<uint64_t>(root_.node));
      split_child(*above, 0);
      store(root_.node, above);
    }
    Node* node = root_.node;
    while (!node->is_leaf) {
      uint32_t i = node->child_for(key);
      if (node->child(i)->count == kKeysMax) {
        split_child(*node, i);
        i = node->child_for(key);
      }
      node = node->child(i);
    }
    uint32_t place = node->count;
    while (place > 0 && node->keys[place - 1] > key) --place;
    put(*node, place, key, value);
    store(root_.keys, root_.keys + 1);
  }

  // All keys in their order, each with its value.
  template <class Visit>
  void visit(Visit visit) const {
    const Node* node = root_.node;
    while (!node->is_leaf) node = node->child(0);
    for (; node != nullptr; node = node->next)
      for (uint32_t i = 0; i < node->count; ++i) visit(node->keys[i], node->below[i]);
  }
  uint64_t keys() const { return root_.keys; }

 private:
  Node* new_node(bool is_leaf) {
    Node* node = run_.allocate<Node>();
    store(node->count, 0u);
    store(node->is_leaf, uint32_t{is_leaf});
    store<Node*>(node->next, nullptr);
    return node;
  }
  static void put(Node& node, uint32_t place, uint64_t key, uint64_t below) {
    for (uint32_t i = node.count; i > place; --i) store(node.keys[i], node.keys[i - 1]);
    for (uint32_t i = node.count; i > place; --i) store(node.below[i], node.below[i - 1]);
    store(node.keys[place], key);
    store(node.below[place], below);
    store(node.count, node.count + 1);
  }
  // Its upper half goes to a new node beside it. `node` has room.
  void split_child(Node& node, uint32_t i) {
    Node& child = *node.child(i);
    Node& upper = *new_node(child.is_leaf);
    const uint32_t half = child.count / 2;
    for (uint32_t k = half; k < child.count; ++k) store(upper.keys[k - half], child.keys[k]);
    for (uint32_t k = half; k < child.count; ++k) store(upper.below[k - half], child.below[k]);
    store(upper.count, child.count - half);
    store(upper.next, child.next);
    store(child.count, half);
    if (child.is_leaf) store(child.next, &upper);
    put(node, i + 1, upper.keys[0], reinterpret_cast<uint64_t>(&upper));
  }

  Run& run_;
  Root& root_;
};

}  // namespace

void run_tree(Run& run) {
  run.start();
  for (uint64_t round = 0; round < run.rounds; ++round) {
    Tree tree(run);
    std::vector<uint64_t> readings(kSensors);
    uint64_t random = 1;
    for (uint64_t i = 0; i < run.size; ++i) {
      random = random * 0x5851F42D4C957F2Du + 0x14057B7EF767814Fu;
      const uint64_t sensor = (random >> 33) % kSensors;
      Section section;
      for (uint64_t k = 0; k < kReadings; ++k) {
        const uint64_t key = sensor << 32 | readings[sensor]++;
        tree.insert(key, ~key);
      }
    }
    uint64_t keys = 0, last = 0;
    tree.visit([&](uint64_t key, uint64_t value) {
      if (value != ~key || (keys != 0 && key <= last)) die("the tree is out of order");
      last = key;
      ++keys;
    });
    if (keys != tree.keys() || keys != run.size * kReadings) die("the tree has lost keys");
  }
  run.stop();
}

}  // namespace spw::bench
