// The library's trees and lists against what libstdc++'s own checks and containers say of them.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <random>
#include <set>
#include <vector>

extern "C" {
using TreeNode = std::_Rb_tree_node_base;
using ListNode = std::__detail::_List_node_base;
void __spw_tree_insert(bool on_left, TreeNode* node, TreeNode* parent, TreeNode& header);
TreeNode* __spw_tree_erase(TreeNode* node, TreeNode& header);
TreeNode* __spw_tree_next(TreeNode* node);
TreeNode* __spw_tree_previous(TreeNode* node);
void __spw_list_hook(ListNode* node, ListNode* place);
void __spw_list_unhook(ListNode* node);
void __spw_list_transfer(ListNode* place, ListNode* first, ListNode* end);
void __spw_list_reverse(ListNode* list);
}

namespace {

struct Number : TreeNode {
  uint32_t value = 0;
};
uint32_t value_of(const TreeNode* node) { return static_cast<const Number*>(node)->value; }

class Tree {
 public:
  Tree() {
    header_._M_color = std::_S_red;
    header_._M_parent = nullptr;
    header_._M_left = header_._M_right = &header_;
  }
  void insert(Number* number) {
    TreeNode* parent = &header_;
    bool on_left = true;
    for (TreeNode* at = header_._M_parent; at != nullptr; at = on_left ? at->_M_left : at->_M_right) {
      parent = at;
      on_left = number->value < value_of(at);
    }
    __spw_tree_insert(on_left, number, parent, header_);
  }
  void erase(Number* number) { EXPECT_EQ(__spw_tree_erase(number, header_), number); }
  std::vector<uint32_t> forwards() {
    std::vector<uint32_t> values;
    for (TreeNode* at = header_._M_left; at != &header_; at = __spw_tree_next(at))
      values.push_back(value_of(at));
    return values;
  }
  std::vector<uint32_t> backwards() {
    std::vector<uint32_t> values;
    if (header_._M_parent == nullptr) return values;
    for (TreeNode* at = &header_; at != header_._M_left;)
      values.push_back(value_of(at = __spw_tree_previous(at)));
    return values;
  }
  // Black nodes on each way down; -1 if it is no red-black tree.
  int black_height() const {
    const TreeNode* root = header_._M_parent;
    if (root == nullptr) return header_._M_left == &header_ && header_._M_right == &header_ ? 0 : -1;
    if (root->_M_parent != &header_ || root->_M_color != std::_S_black) return -1;
    if (header_._M_left != TreeNode::_S_minimum(header_._M_parent)) return -1;
    if (header_._M_right != TreeNode::_S_maximum(header_._M_parent)) return -1;
    return black_height(root);
  }

 private:
  static int black_height(const TreeNode* node) {
    if (node == nullptr) return 0;
    const bool is_red = node->_M_color == std::_S_red;
    for (const TreeNode* below : {node->_M_left, node->_M_right})
      if (below != nullptr && (below->_M_parent != node || (is_red && below->_M_color == std::_S_red)))
        return -1;
    const int left = black_height(node->_M_left), right = black_height(node->_M_right);
    return left < 0 || left != right ? -1 : left + !is_red;
  }
  TreeNode header_;
};

TEST(LibraryTree, random_insertions_and_removals_keep_it_sorted_and_balanced) {
  for (const uint32_t most : {1u, 2u, 3u, 7u, 40u, 2000u}) {
    std::mt19937 random(most);
    Tree tree;
    std::vector<std::unique_ptr<Number>> held;
    std::multiset<uint32_t> expected;
    for (int step = 0; step < 6000; ++step) {
      if (held.size() < most && (held.empty() || random() % 5 < 3)) {
        held.push_back(std::make_unique<Number>());
        held.back()->value = random() % 1000;
        expected.insert(held.back()->value);
        tree.insert(held.back().get());
      } else {
        std::swap(held[random() % held.size()], held.back());
        expected.erase(expected.find(held.back()->value));
        tree.erase(held.back().get());
        held.pop_back();
      }
      ASSERT_GE(tree.black_height(), 0) << "step " << step << " of " << most;
      if (most > 40 && step % 100 != 0) continue;
      ASSERT_EQ(tree.forwards(), std::vector<uint32_t>(expected.begin(), expected.end()));
      ASSERT_EQ(tree.backwards(), std::vector<uint32_t>(expected.rbegin(), expected.rend()));
    }
  }
}

TEST(LibraryTree, ascending_and_descending_insertions_stay_low) {
  for (const bool ascends : {true, false}) {
    Tree tree;
    std::vector<Number> numbers(4096);
    for (uint32_t i = 0; i < numbers.size(); ++i) {
      numbers[i].value = ascends ? i : 4096 - i;
      tree.insert(&numbers[i]);
    }
    EXPECT_GE(tree.black_height(), 6);
    EXPECT_LE(tree.black_height(), 13);
  }
}

class Chain {
 public:
  Chain() { end_._M_next = end_._M_prev = &end_; }
  struct Item : ListNode {
    int value;
  };
  std::vector<int> values() const {
    std::vector<int> values;
    for (const ListNode* at = end_._M_next; at != &end_; at = at->_M_next) {
      EXPECT_EQ(at->_M_next->_M_prev, at);
      values.push_back(static_cast<const Item*>(at)->value);
    }
    return values;
  }
  ListNode* end() { return &end_; }

 private:
  ListNode end_;
};

TEST(LibraryList, does_what_std_list_does) {
  Chain chain;
  Chain::Item items[6];
  for (int i = 0; i < 6; ++i) {
    items[i].value = i;
    __spw_list_hook(&items[i], chain.end());
  }
  EXPECT_EQ(chain.values(), (std::vector{0, 1, 2, 3, 4, 5}));
  __spw_list_transfer(&items[1], &items[3], &items[5]);
  EXPECT_EQ(chain.values(), (std::vector{0, 3, 4, 1, 2, 5}));
  __spw_list_transfer(&items[5], &items[1], &items[5]);
  __spw_list_transfer(&items[0], &items[2], &items[2]);
  EXPECT_EQ(chain.values(), (std::vector{0, 3, 4, 1, 2, 5})) << "onto its own end, and nothing";
  __spw_list_reverse(chain.end());
  EXPECT_EQ(chain.values(), (std::vector{5, 2, 1, 4, 3, 0}));
  __spw_list_unhook(&items[5]);
  __spw_list_unhook(&items[1]);
  EXPECT_EQ(chain.values(), (std::vector{2, 4, 3, 0}));
}

}  // namespace
